# frozen_string_literal: true

# Messages of this engine for a stream whose publishers wait for an answer. The answer is the id, which NATS does not
# say: it is known when the message has been read here. NATS must have acknowledged it, too.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # Under the engine's mutex.
      #
      #   sent ──▶ acknowledged, not read ──▶ told; or read first, then told when it is acknowledged
      #
      # @api private
      class Awaited
        # Seconds in which a message should be read that NATS has acknowledged.
        LATE = 5

        # Where a message is.
        # @!attribute id [Integer, nil] nil: it was not read yet
        # @!attribute sequence [Integer] its number in the stream
        # @!attribute reader [String, nil] name of the consumer that read when NATS acknowledged it
        # @!attribute stored_at [Float] when NATS acknowledged it
        Place = Struct.new(:id, :sequence, :reader, :stored_at)

        # @param outlet [#tell]
        def initialize(outlet)
          @outlet = outlet
          @sent = {}
          @unread = {}
        end

        # @return [Integer] messages that NATS has, and that were not read yet
        def unread
          @unread.size
        end

        # @return [Boolean]
        def any?
          !(@sent.empty? && @unread.empty?)
        end

        # @param entry [Kept] is sent
        # @return [void]
        def add(entry)
          entry.place ||= Place.new
          @sent[entry.number] = entry
        end

        # NATS does not take it.
        # @param entry [Kept]
        # @return [void]
        def drop(entry)
          @sent.delete(entry.number)
        end

        # NATS has it.
        # @param entry [Kept]
        # @param sequence [Integer]
        # @param reader [String, nil]
        # @param is_passed [Boolean] all up to there was read
        # @return [void]
        def stored(entry, sequence, reader, is_passed)
          return unless @sent.delete(entry.number)

          place = entry.place
          return @outlet.tell(entry, place.id || true) if place.id || is_passed

          place.sequence, place.reader, place.stored_at = sequence, reader, now
          @unread[entry.number] = entry
        end

        # @param number [Integer] of a message that was read and counts
        # @param id [Integer]
        # @return [void]
        def read(number, id)
          @sent[number]&.place&.id = id
          entry = @unread.delete(number)
          @outlet.tell(entry, id) if entry
        end

        # A message that was read does not count.
        # @param number [Integer]
        # @return [Proc, nil] of who waits for it
        def take(number)
          entry = @sent.delete(number) || @unread.delete(number) or return
          entry.block.tap { entry.block = nil }
        end

        # All is read. A limit may have removed a message first: NATS had it, and nobody will know its id.
        # @param sequence [Integer] of the last message
        # @param reader [String] name of the consumer
        # @return [void]
        def passed(sequence, reader)
          settle(true) { |place| place.sequence <= sequence || place.reader != reader }
        end

        # The stream has lost what comes after this message.
        # @param sequence [Integer]
        # @return [void]
        def lost(sequence)
          settle(false) { |place| place.sequence > sequence }
        end

        # @param reader [String, nil] name of the consumer
        # @return [Float, nil] seconds until it should have read what NATS has
        def patience(reader)
          return if @unread.empty?

          place = @unread.each_value.first.place
          [place.stored_at + LATE - now, 0].max if place.reader == reader
        end

        private

        def settle(result)
          return if @unread.empty?

          done, @unread = @unread.partition { |_, entry| yield(entry.place) }.map(&:to_h)
          done.each_value { |entry| @outlet.tell(entry, result) }
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
