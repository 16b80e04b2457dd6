# frozen_string_literal: true

# The times when an engine's server is away: says so once, when it begins and when it is over, and knows how long to
# pause before the next attempt. Changed by the engine's thread, asked by others.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    module Queued
      # One engine's sight of its server.
      # @api private
      class Outage
        # Seconds between attempts, and how much of that is chance, so that not all processes come at once.
        SHORTEST = 0.1
        LONGEST = 5.0
        JITTER = 0.5
        # A connection that held for so long was none that breaks at once, again and again.
        STEADY = 5.0
        # Lines about what it does not take.
        REASONS = 50

        # @return [String, nil] why it is away; nil when it is not
        attr_reader :reason

        # @param attempts [Integer] before this one
        # @param longest [Float]
        # @return [Float] seconds
        def self.delay(attempts, longest = LONGEST)
          [SHORTEST * (2**[attempts, 10].min), longest].min * (1 - (rand * JITTER))
        end

        # @param name [String] of the server, without a password
        # @param log [Logger]
        # @param longest [Float, nil] seconds between attempts
        # @yield whenever something has changed
        def initialize(name, log, longest = nil, &on_change)
          @name = name
          @log = log
          @longest = longest || LONGEST
          @on_change = on_change
          @attempts = 0
          @next_attempt = @since = now
          @is_here = @is_full = @is_denied = @is_awaited = false
          @lost = 0
          @refusals = {}
        end

        # @return [Boolean]
        def here?
          @is_here
        end

        # @return [Boolean] whether the last attempt was answered as the next one will be
        def denied?
          @is_denied
        end

        # Somebody waits from now on, who gets an error if it is denied, and needs no line about it.
        # @return [void]
        def await
          @is_awaited = true
          @is_denied = false # what has changed since then is not known
          hurry
        end

        # @return [void]
        def await_no_more
          @is_awaited = false
        end

        # @return [Float, nil] seconds until the next attempt; nil when none is due
        def pause
          [@next_attempt - now, 0].max unless @next_attempt.nil?
        end

        # @return [Boolean]
        def pausing?
          !pause.nil? && pause.positive?
        end

        # @param reason [String]
        # @param is_answer [Boolean] the server gives it itself: worth a line also when it was away before
        # @param is_denied [Boolean] see {#denied?}
        # @return [void]
        def begin(reason, is_answer, is_denied: false)
          @attempts = 0 if @is_here && now - @since > STEADY
          @refusals.clear if @attempts.zero?
          @since = now if @is_here
          is_told = is_denied && @is_awaited
          say_away(reason) if !is_told && (@reason.nil? || (is_answer && reason != @said))
          @reason = reason
          @is_denied = is_denied
          @is_here = false
          @next_attempt = now + (is_told ? @longest : Outage.delay(@attempts, @longest))
          @attempts += 1
          @on_change.call
        end

        # @param found [String, nil] which of several it is now
        # @return [void]
        def over(found = nil)
          @next_attempt = nil
          return if @is_here

          say_over(found)
          @is_here = true
          @is_denied = false
          @reason = nil
          @since = now
          @on_change.call
        end

        # The queue is full: a line for each time.
        # @param limits [String]
        # @return [void]
        def full(limits)
          @lost += 1
          return if @is_full

          @is_full = true
          @log.error "! #{@name}: the queue is full (#{limits}); messages published now are lost"
        end

        # The queue is empty.
        # @return [void]
        def drained
          return unless @is_full

          @log.error "! #{@name}: the queue is empty again; #{@lost} messages or commands were lost"
          @is_full = false
          @lost = 0
        end

        # At the end of the process.
        # @return [String] what was lost while the queue was full, unless {#drained} has said it
        def more_lost
          @is_full ? "; #{@lost} messages or commands were lost before, because the queue was full" : ""
        end

        # No pause before the next attempt.
        # @return [void]
        def hurry
          @next_attempt = now if @next_attempt
        end

        # The server does not take something: a line for each reason, while it is there.
        # @param reason [String]
        # @return [void]
        def refused(reason)
          return if @refusals.key?(reason) || @refusals.size > REASONS

          @refusals[reason] = true
          @log.error "! #{@name}: #{reason}"
          @log.error "! #{@name}: further reasons are not shown" if @refusals.size > REASONS
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        def say_away(reason)
          @said = reason
          @log.error "! #{@name} is not available: #{reason.chomp(".")}; trying again"
        end

        def say_over(found)
          found = ": #{found}" if found
          return @log.say "* #{@name}#{found}" unless @reason

          @log.say format("* %<name>s is available again after %<seconds>.1f s%<found>s",
                          name: @name, seconds: now - @since, found: found)
        end
      end
    end
  end
end
