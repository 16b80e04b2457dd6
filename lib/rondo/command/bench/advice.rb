# frozen_string_literal: true

# What the figures of one server say about its settings. Each piece of advice has the figures behind it, and
# where they say nothing there is none.
# SPDX-License-Identifier: MIT

require "rondo/command/bench/figures"

module Rondo
  class Bench
    # Reads medians, answers sentences.
    class Advice
      # A part of a CPU from which on something counts as busy all the time.
      FULL = 0.9
      # Parts of a request's time: below the first it hardly waits.
      WAITS = 0.2
      # Below that many microseconds most of the time is the way through the kernel and the client.
      SHORT = 300
      # From so many threads on fibers are the better way.
      MANY_THREADS = 24

      # @param server [Hash] of a {Document}: the first server
      # @param cpus [Integer]
      # @param options [Options]
      def initialize(server, cpus, options)
        @alone, @busy, @memory = server[:medians].values_at(:alone, :busy, :memory)
        @cpus = cpus
        @rondo = server[:name] == "rondo"
        @options = options
      end

      # @return [Array<Hash{Symbol => String}>] :set, and :why
      def to_a
        return [cpu_is_not_known] unless @busy[:cpu_us] && @alone[:cpu_us]

        [client, waits, (threads if @rondo), (workers if @rondo), (queue if @busy[:queue_mean_us])].compact
      end

      private

      def advice(set, why)
        { set: set, why: why }
      end

      def cpu_is_not_known
        advice("no advice", "The CPU time of the server is not known here, and all advice rests on it.")
      end

      def processes
        [@options.workers, 1].max
      end

      # Never 0: there are few requests when each of them waits for long.
      def cpu
        [@alone[:cpu_us], 1.0].max
      end

      def wall
        @alone[:mean_us]
      end

      # The part of a request's time in which it uses no CPU.
      def waiting
        [1 - (cpu / wall), 0].max
      end

      def waits?
        wall >= SHORT && waiting >= WAITS
      end

      def client
        used = @busy[:client_busy]
        if used >= FULL
          return advice("the client was the limit",
                        "It used #{Figures.number(used)} of the one CPU it can use. The server can do more " \
                        "requests/s than the report says; CPU per request is right.")
        end
        return if @busy[:busy] + used < FULL * @cpus

        advice("client and server share this machine",
               "Together they used #{Figures.number(@busy[:busy] + used)} of #{@cpus} CPUs, the client " \
               "#{Figures.number(used)}. With the client elsewhere there are more requests/s; CPU per request is " \
               "right.")
      end

      def waits
        figures = "With one connection a request took #{Figures.time(wall)}, of which the server used the CPU for " \
                  "#{Figures.time(cpu)}."
        unless waits?
          if wall < SHORT
            return advice("the application hardly waits",
                          "#{figures} The rest is the way through the kernel and the client.")
          end

          return advice("the application hardly waits", "#{figures} It computes most of the time.")
        end

        advice("the application waits", "#{figures} For #{Figures.percent(waiting)} of the time it waited: for a " \
                                        "database, another server, a disk or a sleep#{or_for_a_cpu}.")
      end

      def or_for_a_cpu
        used = @alone[:elsewhere_busy]
        return "" if used.nil? || used < Document::NOISE

        ", or for a CPU, because other programs used #{Figures.number(used)} of #{@cpus} meanwhile"
      end

      def threads
        unless waits?
          return advice("threads: #{enough} for these paths",
                        "In one process one thread runs Ruby at a time, and these requests compute: " \
                        "#{Figures.time(cpu)} of #{Figures.time(wall)}. More threads help only other paths, which " \
                        "wait.")
        end

        needed = (wall / cpu).ceil
        return fibers(needed) if needed > MANY_THREADS

        advice("threads: about #{needed} for each process",
               "While a request waits, others can use the CPU: #{Figures.time(wall)} over #{Figures.time(cpu)} is " \
               "#{Figures.number(wall / cpu)}. #{with_measured_threads(needed)} A pool of database connections needs " \
               "as many.")
      end

      def enough
        @options.threads == 1 ? "1 is enough" : "#{@options.threads} are enough"
      end

      def with_measured_threads(needed)
        used = "Measured with #{Figures.count(@options.threads, "thread")}, where each process used " \
               "#{Figures.number(@busy[:busy] / processes)} of a CPU."
        needed > @options.threads ? "#{used} Try -t #{needed}." : used
      end

      def fibers(needed)
        advice("fibers, in place of #{needed} threads",
               "A request takes #{Figures.number(wall / cpu)} times as long as it computes: #{Figures.time(wall)} " \
               "over #{Figures.time(cpu)}. #{with_measured_threads(MANY_THREADS)} With --fibers waiting calls need " \
               "no thread, where the application's libraries allow that (docs/FIBERS.md).")
      end

      def workers
        each = @busy[:busy] / processes
        if @busy[:busy] >= FULL * @cpus && processes >= @cpus
          return advice("workers: #{processes} are enough",
                        "The server used #{Figures.number(@busy[:busy])} of #{@cpus} CPUs: more processes would only " \
                        "share them.")
        end
        return (workers_not_needed(each) if waits?) if each < 0.8
        return if processes >= @cpus

        advice("workers: #{@cpus}, as -w auto does",
               "#{processes == 1 ? "The process" : "Each of #{processes} processes"} used #{Figures.number(each)} of " \
               "a CPU, and that is about all that Ruby can use in one process; this machine has #{@cpus}.#{memory}")
      end

      def memory
        bytes = @memory[:pss] || @memory[:rss] or return ""
        " The server took #{Figures.mebibytes(bytes)}, so count about #{Figures.mebibytes(bytes / processes)} for " \
          "each further worker, less what they share."
      end

      def workers_not_needed(each)
        advice("workers: not what limits these requests",
               "A process used #{Figures.number(each)} of a CPU with #{connections} and " \
               "#{Figures.count(@options.threads, "thread")}. Look at threads first.")
      end

      def connections
        Figures.count(@options.connections, "connection")
      end

      def queue
        queue, inside = @busy.values_at(:queue_mean_us, :inside_mean_us)
        return unless queue && inside

        share = queue / (queue + inside)
        advice("queue time: #{Figures.time(queue)} of #{Figures.time(queue + inside)}",
               "With #{connections} at once a request waited #{Figures.time(queue)} for the " \
               "application and was inside for #{Figures.time(inside)} (means; #{Figures.percent(share)} waiting; " \
               "p99 of the wait at most #{Figures.time(@busy[:queue_p99_us])}). Compare with " \
               "rondo_queue_time_seconds in production: where that is much less, requests come more slowly than " \
               "here, and nothing has to be changed.")
      end
    end
  end
end
