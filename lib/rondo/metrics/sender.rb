# frozen_string_literal: true

# Sends the numbers of the scoreboard every few seconds: one thread, in the process that the scoreboard belongs to (the
# master, or the only process). No request ever waits for it. Needs a gem, which is loaded here and nowhere else.
# SPDX-License-Identifier: MIT

require "rondo/metrics/reading"
require "rondo/process/process_loop"

module Rondo
  # Sends what the scoreboard has.
  # @api private
  module Metrics
    # What was sent was not taken.
    class Failed < Rondo::Error; end

    # @param name [Symbol, String] :statsd or :opentelemetry
    # @return [#send_reading, #close] who sends
    # @raise [ConfigurationError] the gem is missing, or a variable of its own is wrong
    def self.target(name)
      case name.to_sym
      when :statsd
        require "rondo/metrics/statsd"
        Statsd.new
      when :opentelemetry
        require "rondo/metrics/open_telemetry"
        OpenTelemetry.new
      end
    end

    # The thread, and when it sends.
    class Sender
      # Seconds that the last sending may take when the process ends.
      FAREWELL = 2

      # @param settings [Settings::Resolved]
      # @param board [Scoreboard]
      # @param log [Logger]
      # @param room [Integer] see {Reading#initialize}
      # @return [Sender] it sends already
      # @raise [ConfigurationError] see {Metrics.target}
      def self.start(settings, board, log, room: board.size)
        interval = settings[:metrics_interval]
        raise ConfigurationError, "metrics_interval must be at least 1, not #{interval}" if interval < 1

        new(Metrics.target(settings[:metrics_to]), board, log, interval: interval, room: room).tap(&:go_on)
      end

      # @param target [#send_reading, #close]
      # @param board [Scoreboard]
      # @param log [Logger]
      # @param interval [Numeric] seconds
      # @param room [Integer]
      def initialize(target, board, log, interval:, room: board.size)
        @target = target
        @board = board
        @log = log
        @interval = interval
        @room = room
        @mutex = Mutex.new
        @changed = ConditionVariable.new
      end

      # @return [void]
      def go_on
        return if @thread&.alive?

        @ends = false
        @thread = Thread.new { run }
        @thread.name = "rondo metrics"
        @thread.report_on_exception = false
      end

      # Sends once more, and ends. In a forked child there is no such thread.
      # @return [void]
      def rest
        return unless @thread&.alive?

        @mutex.synchronize do
          @ends = true
          @changed.signal
        end
        @thread.kill unless @thread.join(FAREWELL)
      end

      private

      def run
        loop do
          ends = wait
          send_now
          break if ends
        end
      ensure
        @target.close
      end

      # A receiver that takes its time leaves out what would have been sent meanwhile.
      def wait
        due = ProcessLoop.now + @interval
        @mutex.synchronize do
          @changed.wait(@mutex, [due - ProcessLoop.now, 0.001].max) until @ends || ProcessLoop.now >= due
          @ends
        end
      end

      def send_now
        @target.send_reading(Reading.new(@board, @room))
      rescue StandardError, NotImplementedError => e
        @log.error "! Metrics could not be sent: #{Logger.quote(e.message)} (this is not said again)" unless @noted
        @noted = true
      end
    end
  end
end
