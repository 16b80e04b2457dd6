# frozen_string_literal: true

# Messages that a store is there for and does not take now, because its disk is full for example. They wait at their
# place, and no other message waits for them. After a pause that grows one of them is sent. Each of the others follows
# when the one before it is stored, up to the last one that was refused. Guarded by the engine's mutex.
#
#   refused ──▶ pause ──▶ the first one is sent ──▶ stored ──▶ the next one is sent ──▶ ... ──▶ the last one: over
#                 ▲                │
#                 └── refused ─────┘
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/outage"
require "rondo/pubsub/queued/outbox"

module Rondo
  module PubSub
    module Queued
      # Of one engine. Entries have a `number`, which ascends.
      # @api private
      class Held
        # @return [Array<Outbox::Entry>] in their order
        attr_reader :entries

        # @param outbox [Outbox] that counts the entries
        # @param name [String] of the server, without a password
        # @param log [Logger]
        # @param clock [#call] seconds
        def initialize(outbox, name, log, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @outbox = outbox
          @name = name
          @log = log
          @clock = clock
          @entries = []
          @last = 0
        end

        # @return [Boolean] whether the store takes nothing, as far as is known: an entry for it waits here
        def on?
          !@since.nil?
        end

        # @param entry [Outbox::Entry] was sent. Others behind it may have been sent, too.
        # @param reason [String]
        # @return [void]
        def refused(entry, reason)
          on? ? go_on(entry) : begin_with(reason)
          @last = [@last, entry.number].max
          place = @entries.bsearch_index { |other| other.number > entry.number } || @entries.size
          @entries.insert(place, entry)
          @outbox.set_aside(entry)
        end

        # @param entry [Outbox::Entry] comes behind those that are here
        # @return [void]
        def add(entry)
          @entries << entry
          @outbox.set_aside(entry)
        end

        # @param is_alone [Boolean] whether no entry for the store is under way
        # @return [Outbox::Entry, nil] to be sent now
        def shift(is_alone)
          return if @entries.empty? || (on? && !(is_alone && @clock.call >= @due))

          entry = @entries.shift
          @outbox.take_up(entry)
          @tried = entry if on?
          entry
        end

        # @param entry [Outbox::Entry] has its place in the store, or never will
        # @return [void]
        def settled(entry)
          return unless on? && entry.equal?(@tried)

          @attempts = 0
          @due = @clock.call
          over if entry.number >= @last
        end

        # @return [Float, nil] seconds until the next one may be sent if none is under way; nil: none waits for a time
        def pause
          [@due - @clock.call, 0].max if on? && @entries.any?
        end

        # The process ends: one more attempt.
        # @return [void]
        def hurry
          @due = @clock.call if on?
        end

        # There is no connection: they are in the outbox again.
        # @return [void]
        def clear
          @entries = []
        end

        private

        def begin_with(reason)
          @since = @clock.call
          @attempts = 0
          @due = @since + Outage.delay(@attempts)
          @log.error "! #{@name}: #{reason.chomp(".")}; messages of channels with a rule wait"
        end

        # The answers to what was sent at once are one attempt.
        def go_on(entry)
          return unless entry.equal?(@tried)

          @attempts += 1
          @due = @clock.call + Outage.delay(@attempts)
        end

        def over
          @log.say format("* %<name>s takes messages of channels with a rule again after %<seconds>.1f s",
                          name: @name, seconds: @clock.call - @since)
          @since = @tried = nil
          @last = 0
        end
      end
    end
  end
end
