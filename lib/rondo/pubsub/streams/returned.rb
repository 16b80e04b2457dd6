# frozen_string_literal: true

# Messages of channels with a history that Redis did not take, and will: it does not write now, or the one before them
# is missing. They keep their order, and hold up nothing else. Under the engine's mutex; used by publisher.rb and
# pump.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/outage"
require "rondo/pubsub/redis/replies"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # What came back, and whether more may go.
      # @api private
      class Returned
        # Redis does not write now; another connection would not help.
        FOR_NOW = /\b(#{Redis::Replies::Refusal::FOR_NOW})\b/
        # The one before it is missing: it was refused, or came back.
        EARLY = /\AEARLY\b/
        # Maybe another node is the master now.
        CUT_OFF = /\bNOREPLICAS\b/
        # What Redis adds to an error of a script.
        PLACE = /\ script:\ \h+,\ on\ .*|\A.*@user_script:\ ?\d+:\ -?/
        # Messages on their way at once. One goes alone after one came back; each answer makes room for one more.
        MOST = 1000

        # @return [Array<Kept>] in the order of their numbers; always the same object
        attr_reader :held

        # @param message [String] of a refusal
        # @return [Boolean] whether such a message goes again on the same connection
        def self.takes?(message)
          FOR_NOW.match?(message) || EARLY.match?(message)
        end

        # @param outbox [Queued::Outbox] that counts the messages
        # @param name [String] of the server, without a password
        # @param log [Logger]
        # @param clock [#call] seconds
        def initialize(outbox, name, log, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @outbox = outbox
          @name = name
          @log = log
          @clock = clock
          @held = []
          @room = MOST
          @flying = @attempts = 0
          @is_returning = false
        end

        # ---- what goes ----

        # @return [Kept, nil] that may go now
        def next
          take_up if @held.any? && open?
        end

        # @param entry [Kept] has a higher number than all others
        # @return [Boolean] whether it may go now; else it is held
        def pass?(entry)
          return true if @held.empty? && open?

          set_aside(entry, @held.size)
          false
        end

        # One is on its way.
        # @return [void]
        def sent
          @is_returning = false if @flying.zero?
          @flying += 1
        end

        # ---- answers ----

        # Redis has it, or will never take it.
        # @return [void]
        def answered
          @flying -= 1
          @room += 1 if @room < MOST
        end

        # @param entry [Kept] Redis did not take it
        # @param reason [String]
        # @return [void]
        def back(entry, reason)
          @flying -= 1
          set_aside(entry, @held.bsearch_index { |each| each.number > entry.number } || @held.size)
          return if @is_returning

          @is_returning = true
          @room = 1
          wait(reason) unless EARLY.match?(reason)
        end

        # Redis writes.
        # @return [void]
        def over
          return unless @reason

          @log.say format("* %<name>s writes again after %<seconds>.1f s", name: @name, seconds: now - @since)
          @reason = @next_at = nil
          @attempts = 0
        end

        # The connection is closed; who closes it has {#among}.
        # @return [void]
        def forget_link
          @held.clear
          @flying = 0
          @is_returning = false
        end

        # @param number [Integer]
        # @return [Boolean] whether one before it is held
        def before?(number)
          @held.any? && @held.first.number < number
        end

        # @param unanswered [Array<Array(Object, Boolean)>] of {Redis::Link#unanswered}
        # @return [Array<Array(Object, Boolean)>] with what is held, in its place
        def among(unanswered)
          return unanswered if @held.empty?

          kept, others = unanswered.partition { |entry, _| entry.is_a?(Kept) }
          [*(kept + @held.map { |entry| [entry, true] }).sort_by { |entry, _| entry.number }, *others]
        end

        # ---- time ----

        # @return [Float, nil] seconds until one may go
        def pause
          [@next_at - now, 0].max if @next_at && @held.any?
        end

        # @return [Boolean] whether one may go, if no other node is the master now
        def unsure?
          pause&.zero? && @flying.zero? && CUT_OFF.match?(@reason)
        end

        # The process ends: one more attempt.
        # @return [void]
        def hurry
          @next_at = now if @next_at
        end

        private

        def now
          @clock.call
        end

        def set_aside(entry, place)
          @held.insert(place, entry)
          @outbox.set_aside(entry)
        end

        def take_up
          @held.shift.tap { |entry| @outbox.take_up(entry) }
        end

        # What is on its way may come back, and goes before all others.
        def open?
          @next_at = nil if @next_at && @next_at <= now
          @next_at.nil? && @flying < @room && !(@is_returning && @flying.positive?)
        end

        def wait(reason)
          @next_at = now + Queued::Outage.delay(@attempts)
          @attempts += 1
          is_told = @reason
          @reason = reason
          return if is_told

          @since = now
          @log.error "! #{@name} does not write now: #{reason.sub(PLACE, "").chomp(".")}; messages of channels with " \
                     "a history wait"
        end
      end
    end
  end
end
