# frozen_string_literal: true

# What the scoreboard says at one moment, for those who send it: statsd.rb and open_telemetry.rb. The names are those
# of /metrics, without `rondo_` and `_total`.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/cluster/lifetimes"

module Rondo
  # @api private
  module Metrics
    # A process that serves. `number` is that of its slot, `leaving` whether a newer process of that slot is there,
    # `started_ms` when it was started. `gauges` and `counters` are numbers by name, `ages` seconds by name; `times` are
    # the histograms: name => [counts by bucket, sum in microseconds].
    Worker = Struct.new(:number, :leaving, :pid, :started_ms, :state, :gauges, :counters, :ages, :times,
                        keyword_init: true)

    # The rows of the scoreboard that have a process.
    class Reading
      # Facts that are times of the clock, by the name of the time since then.
      AGES = { worker_age_seconds: :started_ms, last_turn_age_seconds: :last_turn_ms,
               ruby_turn_age_seconds: :ruby_turn_ms, oldest_call_age_seconds: :oldest_call_ms,
               task_lateness_seconds: :oldest_task_ms }.freeze
      # Histograms of the scoreboard by their names as metrics.
      TIMES = { queue_time_seconds: :wait, request_duration_seconds: :duration }.freeze
      # What these mean.
      DOCS = {
        worker_age_seconds: "since the process was started", last_turn_age_seconds: "since the last sign of life",
        ruby_turn_age_seconds: "since a Ruby thread ran the loop or returned from the application",
        oldest_call_age_seconds: "since the application got the oldest request that has no answer yet",
        task_lateness_seconds: "how late the task is that has waited for a thread for longest",
        queue_time_seconds: "from the time a request can be read until the application gets it",
        request_duration_seconds: "in the application"
      }.freeze
      GAUGES, COUNTERS = %i[gauge counter].map do |kind|
        Scoreboard::NUMBERS.select { |_, row| row[:kind] == kind }.keys.freeze
      end

      # @return [Array<Worker>]
      attr_reader :workers
      # @return [Integer] milliseconds of the monotonic clock
      attr_reader :time_ms

      # @param board [Scoreboard]
      # @param room [Integer] rows i and i + room are of one slot
      def initialize(board, room)
        @board = board
        @time_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
        rows = (0...board.size).to_h { |index| [index, board.row(index)] }.reject { |_, row| row[:pid].zero? }
        @workers = rows.map { |index, row| worker(index, row, room, rows) }
      end

      private

      def worker(index, row, room, rows)
        others = rows.select { |other, _| other != index && other % room == index % room }
        leaving = others.any? { |other, its| ([its[:started_ms], other] <=> [row[:started_ms], index]).positive? }
        Worker.new(number: index % room, leaving: leaving, pid: row[:pid], started_ms: row[:started_ms],
                   state: Scoreboard::STATES[row[:state]],
                   gauges: { **row.slice(*GAUGES), rss_bytes: Lifetimes.memory(row[:pid]) },
                   counters: row.slice(*COUNTERS), ages: ages(row), times: times(index))
      end

      def ages(row)
        AGES.transform_values { |name| row[name] }.reject { |_, since| since.zero? }
            .transform_values { |since| [@time_ms - since, 0].max / 1000.0 }
      end

      def times(index)
        TIMES.transform_values { |name| [@board.histogram(index, name), @board.sum_us(index, name)] }
      end
    end
  end
end
