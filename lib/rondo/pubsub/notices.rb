# frozen_string_literal: true

# What an engine is to know of subscriptions, and what it has been told. This is state, not a queue: for each
# channel the last word wins, so there is never more of it than channels exist or are known to the engine, and
# nothing is dropped. A call that raises is repeated until it succeeds or its word does not hold any more.
# SPDX-License-Identifier: MIT

module Rondo
  module PubSub
    # Subscriptions of one engine. It is notified of one at a time, by a thread of its own or by the caller of
    # {#notify_due}.
    # @api private
    class Notices
      # Seconds until calls that raised are repeated; doubled while some of them raise again.
      RETRY = 1
      RETRY_MAX = 60
      # Seconds after which an engine is named that does not come back from a call.
      SLOW = 5
      # Seconds that a publish waits for what is due before it, and for one call of those.
      CATCH_UP = 1
      STUCK = 0.05
      # Seconds between two lines about errors of one engine.
      LINE_EVERY = 1

      # @param engine [#subscribe, #unsubscribe]
      # @param own_thread [Boolean] started with the first change, in each process that needs it
      # @param retry_after [Numeric] seconds
      # @param slow_after [Numeric] seconds
      # @yieldreturn [Logger]
      def initialize(engine, own_thread: false, retry_after: RETRY, slow_after: SLOW, &log)
        @engine = engine
        @own_thread = own_thread
        @retry_after = @pause = retry_after
        @slow_after = slow_after
        @log = log
        @mutex = Mutex.new
        @changed = ConditionVariable.new
        @known = {} # by channel: true, or :unsure after a call that raised, or that a reset came into
        @due = {} # by channel: whether it is wanted
        @failed = {} # likewise; due again at @retry_at
        @unnamed = 0
      end

      # The channel has subscribers now, or has none any more. Any thread; waits for no engine.
      # @param channel [String]
      # @param is_pattern [Boolean]
      # @param wanted [Boolean]
      # @return [void]
      def want(channel, is_pattern, wanted)
        key = [channel, is_pattern]
        line = @mutex.synchronize do
          @failed.delete(key)
          state_of(key) == wanted ? @due.delete(key) : @due[key] = wanted
          wake
          slow_line
        end
        @log.call.error(line) if line
      end

      # The engine has forgotten everything: it is notified of all subscriptions again.
      # @param interests [Array<Array(String, Boolean)>]
      # @return [void]
      def reset(interests)
        @mutex.synchronize do
          [@known, @failed].each(&:clear)
          @due = interests.to_h { |key| [key, true] }
          doubt_call
          wake
        end
      end

      # Tells the engine all that is due, on this thread.
      # @return [void]
      def notify_due
        while (key, wanted = next_due)
          notify(key, wanted)
        end
      end

      # @return [Numeric, nil] seconds until there is something to tell; nil: nothing is due
      def pause
        @mutex.synchronize { seconds_left }
      end

      # @param seconds [Numeric] at most
      # @return [Boolean] whether the engine has been told everything, but for what it raised at
      def flush(seconds)
        limit = now + seconds
        @mutex.synchronize do
          until @ended || (@due.empty? && @calling.nil?)
            left = limit - now
            return false unless left.positive?

            @changed.wait(@mutex, left)
          end
        end
        true
      end

      # Waits until the engine has been told all that is due, so that what is published next comes back to those
      # who subscribed before. An engine that does not return from a call delays no subscriber for long.
      # @return [void]
      def catch_up
        limit = now + CATCH_UP
        @mutex.synchronize do
          until @ended || @thread == Thread.current || (@due.empty? && @calling.nil?)
            left = [limit, @calling ? @began + STUCK : limit].min - now
            break unless left.positive?

            @changed.wait(@mutex, left)
          end
        end
      end

      # Sends no more notices. Does not wait for the engine.
      # @return [void]
      def end
        @mutex.synchronize do
          @ended = true
          @changed.broadcast
        end
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # ---- under the mutex ----

      # As the engine knows it once the call that is on its way has come back.
      def state_of(key)
        @calling == key ? @calling_wanted : @known.fetch(key, false)
      end

      # The call may have reached the engine before it forgot, or after: its word counts for nothing.
      def doubt_call
        return unless @calling

        @due[@calling] = false unless @due.key?(@calling)
        @calling_wanted = :unsure
      end

      def seconds_left
        return 0 unless @due.empty?

        [@retry_at - now, 0].max unless @failed.empty?
      end

      def requeue_failed
        return if @failed.empty? || now < @retry_at

        @due.merge!(@failed)
        @failed.clear
      end

      # Of a thread that was killed, or stayed behind in the parent of this process.
      def requeue_call
        return unless @calling

        @due[@calling] = @calling_wanted unless @due.key?(@calling)
        @known[@calling] = :unsure
        @calling = nil
      end

      # One line for each call that does not come back.
      def slow_line
        return if @calling.nil? || @slow_named || now - @began < @slow_after

        @slow_named = true
        "! #{@engine.class} has not returned from a notice of a subscription for #{(now - @began).round} s: " \
          "#{@due.size} more notices wait"
      end

      def came_back
        @calling = nil
        @changed.broadcast
        return unless @slow_named

        @slow_named = false
        "- #{@engine.class} returned after #{(now - @began).round(1)} s and is notified of what has changed since"
      end

      # ---- the thread ----

      def wake
        @changed.broadcast
        return if !@own_thread || @thread&.alive?

        requeue_call
        @thread = Thread.new { run }
        @thread.name = "rondo engine notices"
        @thread.thread_variable_set(:fork_safe, true)
      end

      def run
        until @ended
          notify_due
          @mutex.synchronize { @changed.wait(@mutex, seconds_left) unless @ended || seconds_left&.zero? }
        end
      end

      # ---- telling ----

      def next_due
        @mutex.synchronize do
          requeue_failed
          key, wanted = @due.first
          next if @ended || key.nil?

          @due.delete(key)
          @calling = key
          @calling_wanted = wanted
          @began = now
          [key, wanted]
        end
      end

      def notify(key, wanted)
        @engine.public_send(wanted ? :subscribe : :unsubscribe, *key)
        succeeded(key, wanted)
      rescue SystemExit
        raise # ends the process, as in any thread
      rescue Exception => e # rubocop:disable Lint/RescueException -- the thread would not be started again
        failed(key, wanted, e)
      end

      def succeeded(key, wanted)
        line = @mutex.synchronize do
          note_known(key, @calling_wanted == :unsure ? :unsure : wanted)
          @pause = @retry_after if @failed.empty?
          came_back
        end
        @log.call.info(line) if line
      end

      def note_known(key, state)
        state ? @known[key] = state : @known.delete(key)
      end

      # The engine may have done it or not: a newer word is told either way, else this one again.
      def failed(key, wanted, error)
        line = @mutex.synchronize do
          @known[key] = :unsure
          try_again(key, wanted) unless @due.key?(key) || @ended
          came_back
          error_line(wanted, error)
        end
        @log.call.error(line) if line
      end

      def try_again(key, wanted)
        if @failed.empty?
          @retry_at = now + @pause
          @pause = [@pause * 2, RETRY_MAX].min
        end
        @failed[key] = wanted
      end

      def error_line(wanted, error)
        @unnamed += 1
        return if @line_at && now - @line_at < LINE_EVERY

        more = @unnamed == 1 ? "" : " (#{@unnamed} errors)"
        @line_at = now
        @unnamed = 0
        "! #{@engine.class}##{wanted ? :subscribe : :unsubscribe}#{more}: #{text_of(error)}"
      end

      # The engine's exception may raise when it is asked what it says.
      def text_of(error)
        error.full_message(highlight: false)
      rescue StandardError
        error.class.name
      end
    end
  end
end
