# frozen_string_literal: true

# Measures the servers of `rondo bench` in rounds. In a round each server is measured in three ways: with
# one connection, with many, and with a mix in which some take more than others. Ratios are taken within a
# round, because a machine's speed drifts.
# SPDX-License-Identifier: MIT

require "rondo/command/bench/processes"

module Rondo
  class Bench
    # Starts, warms up, measures.
    class Rounds
      # One request at a time; all connections busy; kept, pipelining and new connections side by side.
      PHASES = %i[alone busy mixed].freeze
      # Requests that a pipelining connection has on their way.
      DEPTH = 8
      # Seconds that the last answers of a measurement may take.
      PATIENCE = 30
      # What is kept of a measurement as the load has it.
      SAME = %i[answers seconds p50_us p99_us mean_us longest_us curve_us broken refused unanswered reconnects
                unclosed].freeze

      # @param contenders [Array<Contender, Running>]
      # @param options [Options]
      # @yieldparam line [String] what it does
      def initialize(contenders, options, &say)
        @contenders = contenders
        @options = options
        @say = say
      end

      # @return [void]
      # @raise [Refused] a server does not start, does not answer, or answers errors
      def run
        @contenders.each { |contender| begin_with(contender) }
        @options.rounds.times do |round|
          order = @contenders.rotate(round)
          order.each { |contender| contender.rounds << PHASES.to_h { |phase| [phase, measure(contender, phase)] } }
          order.each { |contender| contender.rounds.last[:memory] = Processes.memory(contender.pids) }
          @say.call("round #{round + 1} of #{@options.rounds}: #{@contenders.map { |each| short(each) }.join(", ")}")
        end
      end

      # @param connections [Integer]
      # @return [Hash{Symbol => Integer}] how many of each kind the phase has
      def self.connections(phase, connections)
        return { kept: 1, piped: 0, fresh: 0 } if phase == :alone
        return { kept: connections, piped: 0, fresh: 0 } if phase == :busy

        { kept: connections - (2 * (connections / 4)), piped: connections / 4, fresh: connections / 4 }
      end

      # How unequal the waits are among those who do not take more than others: the 99th percentile of the connection
      # that waits longest, over the median of the connections' medians.
      #
      # @param lines [Array<Hash>] of {Load.run}
      # @return [Float, nil]
      def self.fairness(lines)
        polite = lines.reject { |line| line[:kind] == :piped }
        middle = Figures.median(polite.map { |line| line[:p50_us] }.select(&:positive?))
        middle && polite.map { |line| line[:answers].zero? ? line[:longest_us] : line[:p99_us] }.max / middle
      end

      private

      def begin_with(contender)
        contender.start
        @options.paths.each { |path| probe(contender, path) }
        @say.call("#{[contender.title, contender.version].compact.join(" ")} answers, warming up")
        load(contender, :busy, [@options.seconds, 1].min)
      end

      def probe(contender, path)
        answer = contender.target.ask(path, @options.headers)
        contender.answer ||= answer
        raise Refused, "#{contender.title}, #{path}: answers #{answer.status}, so there is nothing to measure" if
          answer.status >= 400
        return if answer.status < 300

        contender.notes << "#{path}: answers #{answer.status}#{" to #{answer.location}" if answer.location}"
      rescue SystemCallError => e
        raise Refused, "nothing answers at #{contender.target}: #{SystemCallError.new(nil, e.errno).message}"
      end

      def load(contender, phase, seconds)
        target = contender.target
        texts = [false, true].map do |last|
          @options.paths.map { |path| target.request(path, @options.headers, last: last) }
        end
        Load.run(target.host, target.port,
                 { requests: texts[0], last_requests: texts[1], depth: DEPTH, seconds: seconds,
                   patience: PATIENCE.to_f, **Rounds.connections(phase, @options.connections) })
      end

      def measure(contender, phase)
        contender.check
        others = (@contenders - [contender]).flat_map(&:pids)
        stats = contender.stats if phase == :busy
        before = look(contender, others)
        loaded = load(contender, phase, @options.seconds)
        after = look(contender, others)
        contender.check
        judge(contender, loaded)
        waits = contender.stats&.since(stats) if stats
        derive(loaded, before, after, phase).merge(waits.to_h)
      end

      def look(contender, others)
        { time: ProcessLoop.now, own: Processes.cpu(contender.pids), others: Processes.cpu(others),
          machine: Processes.machine }
      end

      # CPUs that were used by everything else on this machine.
      def elsewhere(before, after, known)
        return unless before[:machine] && after[:machine]

        [(after[:machine] - before[:machine] - known) / (after[:time] - before[:time]), 0].max
      end

      def derive(loaded, before, after, phase)
        used = Processes.cpu_between(before[:own], after[:own])
        neighbours = Processes.cpu_between(before[:others], after[:others]).to_f
        lasted = after[:time] - before[:time]
        found = loaded.slice(*SAME)
        found.update(rps: loaded[:in_time] / loaded[:seconds], statuses: statuses(loaded),
                     cpu_us: used && used * 1e6 / loaded[:answers], busy: used && used / lasted,
                     client_busy: loaded[:client_cpu_s] / lasted,
                     neighbours_busy: neighbours / lasted,
                     elsewhere_busy: used && elsewhere(before, after, used + neighbours + loaded[:client_cpu_s]))
        return found unless phase == :mixed

        found.merge(connections: loaded[:connections], fairness: Rounds.fairness(loaded[:connections]))
      end

      def judge(contender, loaded)
        answers = loaded[:answers]
        raise Refused, "#{contender.title} does not answer any more" if answers.zero?

        failed = statuses(loaded).except("2xx", "3xx")
        return if failed.values.sum * 2 <= answers

        raise Refused, "#{contender.title}: #{failed.values.sum} of #{answers} answers were errors " \
                       "(#{failed.map { |group, count| "#{group}: #{count}" }.join(", ")})"
      end

      # @return [Hash{String => Integer}] those that came
      def statuses(loaded)
        loaded[:statuses].each_with_index.to_h { |count, group| [group.zero? ? "others" : "#{group}xx", count] }
                         .reject { |_, count| count.zero? }
      end

      def short(contender)
        "#{contender.title} #{contender.rounds.last[:busy][:rps].round} requests/s"
      end
    end
  end
end
