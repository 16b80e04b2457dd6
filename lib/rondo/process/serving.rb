# frozen_string_literal: true

# Runs a server on this thread until it is stopped, and ends an application that does not finish by
# itself. The launcher, workers and the handlers of other programs use it.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Runs a server and stops it by its deadline.
  # @api private
  class Serving
    # Seconds that the application has after the core has given it up.
    GRACE = 1

    # Ends {#run} and the threads of the application. It is a SignalException, because the server passes
    # those on from wherever it is.
    class GivenUp < SignalException
      def initialize
        super("TERM")
      end
    end

    # @param seconds [Numeric]
    # @return [String] for the log
    def self.notice(seconds)
      "- Not ready any more; the stop begins in #{format("%g", seconds)} s, or at a second Ctrl-C or TERM"
    end

    # @return [Server]
    attr_reader :server

    # @param server [Server]
    # @param log [Logger]
    # @param drain_ms [Integer] for requests in flight
    # @param debug [Symbol, nil] when to log what all threads do: :always, when a stop begins; :on_force, when its time
    #   is over
    # @param drain [Boolean] whether the end of the whole server serves what waits in the queues of its sockets
    # @yieldparam seconds [Integer] what it may take; once, when a stop begins
    def initialize(server, log, drain_ms:, debug: nil, drain: true, &before_drain)
      @server = server
      @log = log
      @drain_ms = drain_ms
      @debug = debug
      @drain = drain
      @before_drain = before_drain
      @lock = Mutex.new
      @stopping = false
    end

    # @return [Boolean]
    def stopping?
      @stopping
    end

    # Serves until stopped, then returns, also when the application had to be given up.
    # @return [void]
    def run
      Thread.handle_interrupt(GivenUp => :never) { run_interruptible }
    rescue GivenUp
      nil # what belongs to the end of the process comes now
    end

    # Graceful the first time, at once the second time.
    # @param force [Boolean] at once
    # @param whole [Boolean] the whole server ends, and not only this worker
    # @param spread [Boolean] upgraded connections end by drain_spread_ms
    # @return [void]
    def stop(force: @stopping, whole: true, spread: true)
      log_threads("Stop begins") if @debug == :always && !@stopping
      @stopping = true
      before_drain = @lock.synchronize { @before_drain.tap { @before_drain = nil } }
      before_drain&.call(force ? 0 : GRACE)
      @server.stop(force: force, drain: @drain || !whole, spread: spread)
      end_application_after(force ? 0 : @drain_ms / 1000.0)
    end

    # Logs what a stop waits for, if it waits.
    # @param who [String, nil] name of this process, where several write to the log
    # @return [void]
    def say_what_is_left(who = nil)
      left = in_flight or return
      @log.say "- #{who ? "#{who} waits" : "Waiting"} for #{left}, at most #{format("%g", @drain_ms / 1000.0)} s; " \
               "a second Ctrl-C or TERM stops at once"
    end

    private

    def in_flight
      left = [requests, tasks].compact
      left.join(" and ") unless left.empty?
    end

    def requests
      count, verb, path, seconds = @server.in_flight
      return if count.zero?

      text = count == 1 ? "1 request" : "#{count} requests"
      verb ? "#{text}, the oldest #{Logger.quote(verb)} #{Logger.quote(path)} for #{seconds.round(1)} s" : text
    end

    def tasks
      count = @server.stats.values_at(:tasks_running, :tasks_waiting).sum
      "#{count} task#{"s" if count > 1}" if count.positive?
    end

    def run_interruptible
      @lock.synchronize { @thread = Thread.current }
      Thread.handle_interrupt(GivenUp => :immediate) { @server.run }
    ensure
      @lock.synchronize { @thread = nil }
    end

    # The core cannot end a request that the application does not finish. So its threads are ended, which
    # runs their `ensure`, a moment after the core has dropped the connections.
    def end_application_after(seconds)
      Thread.new do
        sleep(seconds + GRACE)
        @lock.synchronize { give_up if @thread }
      end
    end

    def log_threads(what)
      @log.error ProcessSetup.thread_backtraces("#{what} (PID: #{Process.pid}):")
    end

    def give_up
      log_threads("Time of the stop is over") if @debug == :on_force
      left = in_flight
      what = requests || !tasks ? "request" : "task"
      @log.say "- Ended while the application was still working on a #{what}#{" (#{left})" if left}"
      @thread.raise(GivenUp)
      @thread = nil # once is enough
    end
  end
end
