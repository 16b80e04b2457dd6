# frozen_string_literal: true

# What `rondo top` shows, without drawing it: samples of /stats, and what happened between two of
# them. Neighbours: screen.rb draws it, ../top.rb takes the samples.
# SPDX-License-Identifier: MIT

require "json"
require "time"
require "rondo/command/top/form"

module Rondo
  class Top
    # One worker as it was at one moment.
    Worker = Struct.new(:index, :numbers, :wait, :duration) do
      # @return [Integer] a number of the scoreboard, 0 where an older server has none
      def [](name)
        name.is_a?(Symbol) ? super : numbers.fetch(name, 0)
      end
    end

    # A request that is inside the application or waits, as the worker saw it. `state` is a key of {STATES}.
    Call = Struct.new(:worker, :state, :age_us, :status, :request, :client, keyword_init: true) do
      # @return [String]
      def words
        state == "answering" ? "#{STATES[state]} (#{status})" : STATES.fetch(state, state)
      end
    end

    # What a request does, in the words of the status page.
    STATES = { "inside" => "in the application", "client" => "waits for its client", "answering" => "sends its answer",
               "hung" => "hangs", "thread" => "waits for a thread",
               "turn" => "waits for others of its connection" }.freeze

    # All of /stats at one moment.
    class Sample
      # @return [Array<Worker>]
      attr_reader :workers
      # @return [Integer] milliseconds of the server's clock
      attr_reader :time_ms
      # @return [Array<Integer>] upper ends of the buckets in microseconds
      attr_reader :bounds_us
      # @return [String]
      attr_reader :version
      # @return [Time]
      attr_reader :started_at
      # @return [Array<Hash{String => Object}>] certificates of the listeners; none where an older server shows none
      attr_reader :certificates
      # @return [Array<Hash{String => Object}>] lines of the log, the oldest first; none where an older server has none
      attr_reader :log
      # @return [Integer] bytes of master and molds, which are not workers; 0 where that is not known
      attr_reader :other_bytes

      # @param text [String] of /stats
      # @raise [Error] it is something else
      def initialize(text)
        stats = JSON.parse(text)
        raise TypeError unless Form.of?(stats)

        @cluster = stats.key?("worker_status")
        @workers = (@cluster ? stats["worker_status"] : [stats]).map { |row| worker(row) }
        @queues = stats.fetch("accept_queues")
        @certificates = stats.fetch("certificates", [])
        @bounds_us = stats.fetch("bounds_us")
        raise TypeError unless @workers.flat_map { |one| [one.wait.size, one.duration.size] }.all?(@bounds_us.size + 1)

        @time_ms = stats.fetch("time_ms")
        @started_at = Time.iso8601(stats.fetch("started_at"))
        @log = stats.fetch("log", [])
        @version = stats.dig("versions", "rondo").to_s
        @other_bytes = stats.fetch("master_rss_bytes", 0) + stats.fetch("mold_rss_bytes", 0)
      rescue JSON::ParserError, KeyError, TypeError, NoMethodError, ArgumentError
        raise Error, "this is not the statistics page of a Rondo server"
      end

      # @return [Boolean] whether the server has worker processes
      def cluster?
        @cluster
      end

      # @return [Integer, nil] connections that wait in the kernel
      def accept_queue
        depths = @queues.filter_map { |queue| queue["depth"] }
        depths.sum unless depths.empty?
      end

      # @return [Hash{String => Object}, nil] the certificate that expires first
      def next_to_expire
        @certificates.min_by { |one| one.fetch("days_left") }
      end

      # @return [Array<Call>] of all workers, the oldest first
      def calls
        @workers.flat_map { |worker| calls_of(worker) }.sort_by { |call| -call.age_us }
      end

      private

      # A worker that cannot look any more has seen its calls long ago.
      def calls_of(worker)
        seen_ms = worker["seen_ms"]
        now_ms = @time_ms - seen_ms < 1000 ? seen_ms : @time_ms
        Array(worker.numbers["calls"]).map do |call|
          Call.new(worker: worker.index, state: call["state"], age_us: [now_ms - since_of(call), 0].max * 1000,
                   status: call["status"], request: call["request"].to_s, client: call["client"])
        end
      end

      def since_of(call)
        waits = call["state"] == "client" && call["client_since_ms"].positive?
        call[waits ? "client_since_ms" : "since_ms"]
      end

      def worker(row)
        numbers = row.fetch("rondo")
        Worker.new(row.fetch("index", 0), numbers, numbers.fetch("queue_time_us").fetch("buckets"),
                   numbers.fetch("duration_us").fetch("buckets"))
      end
    end

    # The changes between two samples. Times are in microseconds, and nil if they are unknown.
    class Figures
      # A worker without a free thread and without a sign of life from Ruby for this long is stuck.
      STUCK_MS = 2000
      Row = Struct.new(:index, :pid, :generation, :state, :busy, :threads, :max_threads, :queue, :connections,
                       :tls_connections, :rss_bytes, :oldest_us, :rate, :file_rate, :full_rate, :resumed_rate,
                       :failed_rate, :task_rate, :tasks_waiting, :tasks_running, :timers, :late_us,
                       :wait_p50, :wait_p99, :time_p50, :time_p99, :refused, :dropped, :timed_out, keyword_init: true)
      SUMS = %i[busy threads max_threads queue connections tls_connections rss_bytes tasks_waiting tasks_running
                timers refused dropped timed_out].freeze
      GAUGES = %i[pid generation].union(SUMS).freeze
      # Of what is counted: the number of the scoreboard, and how much of it there was in a second.
      COUNTED = { "requests" => :rate, "static_answers" => :file_rate, "tls_full" => :full_rate,
                  "tls_resumed" => :resumed_rate, "tls_failed" => :failed_rate, "tasks" => :task_rate }.freeze

      # @return [Sample]
      attr_reader :sample
      # @return [Array<Row>] one for each worker
      attr_reader :rows
      # @return [Row] all workers together
      attr_reader :total

      # @param before [Sample, nil]
      # @param sample [Sample]
      def initialize(before, sample)
        @sample = sample
        @seconds = before && [(sample.time_ms - before.time_ms) / 1000.0, 0.001].max
        @deltas = sample.workers.map { |worker| delta(worker, before) }
        @rows = sample.workers.zip(@deltas).map { |worker, delta| row(worker, delta) }
        @total = total_row
      end

      # For scripts. Times are in microseconds.
      # @return [Hash{Symbol => Object}] time (RFC 3339), the total, the workers, and their oldest requests
      def to_h
        calls = @sample.calls.map { |call| call.to_h.merge(words: call.words) }
        { time: Time.now.utc.iso8601, version: @sample.version, accept_queue: @sample.accept_queue,
          total: @total.to_h.compact, workers: @rows.map { |row| row.to_h.compact }, calls: calls }
      end

      # @return [Integer] workers that serve
      def ready
        @rows.count { |row| row.state == "ready" }
      end

      # The time below which that part of the measurements lies, as the server counts it itself.
      # @param counts [Array<Integer>] by bucket
      # @param bounds [Array<Integer>] upper ends of all buckets but the last
      # @param part [Float] 0.99
      # @return [Integer, nil]
      def self.percentile(counts, bounds, part)
        rank = [(counts.sum * part).ceil, 1].max
        below = 0
        counts.each_with_index do |count, bucket|
          return within(bounds, bucket, rank - below, count) if below + count >= rank

          below += count
        end
        nil
      end

      def self.within(bounds, bucket, rank, count)
        low = bucket.zero? ? 0 : bounds[bucket - 1]
        high = bounds[bucket] or return low # of the last bucket only its lower end is known
        low + ((high - low) * rank / count)
      end
      private_class_method :within

      private

      def total_row
        sums = SUMS.to_h { |name| [name, @rows.sum(&name)] }
        sums[:rss_bytes] += @sample.other_bytes
        Row.new(**sums, oldest_us: @rows.filter_map(&:oldest_us).max, late_us: @rows.filter_map(&:late_us).max,
                        **times(add(@deltas)))
      end

      # A new process counts from zero.
      def delta(worker, before)
        return unless before

        old = before.workers.find { |other| other.index == worker.index && other["pid"] == worker["pid"] }
        { counts: COUNTED.keys.map { |name| worker[name] - (old ? old[name] : 0) },
          wait: subtract(worker.wait, old&.wait), time: subtract(worker.duration, old&.duration) }
      end

      def subtract(counts, old)
        old ? counts.zip(old).map { |now, then_| [now - then_, 0].max } : counts
      end

      def add(deltas)
        return if deltas.empty? || deltas.include?(nil)

        { counts: deltas.map { |delta| delta[:counts] }.transpose.map(&:sum),
          wait: deltas.map { |delta| delta[:wait] }.transpose.map(&:sum),
          time: deltas.map { |delta| delta[:time] }.transpose.map(&:sum) }
      end

      def row(worker, delta)
        gauges = GAUGES.to_h { |name| [name, worker[name.to_s]] }
        Row.new(index: worker.index, state: stuck?(worker) ? "stuck" : worker.numbers["state"], **gauges,
                oldest_us: since(worker["oldest_call_ms"]), late_us: since(worker["oldest_task_ms"]), **times(delta))
      end

      # No call has returned from the application for a while, and there is no thread for another request: all
      # are in the application, or Ruby keeps them from running.
      def stuck?(worker)
        return false unless worker.numbers["state"] == "ready" && worker["busy"].positive?
        return false unless worker["busy"] >= worker["max_threads"] || worker["standing_in"] == 1

        (since(worker["ruby_turn_ms"]) || 0) >= STUCK_MS * 1000
      end

      # @param time_ms [Integer] of the server's clock, 0 for never
      # @return [Integer, nil] microseconds
      def since(time_ms)
        [@sample.time_ms - time_ms, 0].max * 1000 if time_ms.positive?
      end

      def times(delta)
        return {} unless delta

        rates = delta[:counts].map { |count| [count, 0].max / @seconds }
        COUNTED.values.zip(rates).to_h.merge(
          wait_p50: percentile(delta[:wait], 0.5), wait_p99: percentile(delta[:wait], 0.99),
          time_p50: percentile(delta[:time], 0.5), time_p99: percentile(delta[:time], 0.99)
        )
      end

      def percentile(counts, part)
        Figures.percentile(counts, @sample.bounds_us, part)
      end
    end
  end
end
