# frozen_string_literal: true

# What an engine is to send, or has sent without an answer yet, within limits of number and bytes. Guarded by the
# engine's mutex.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    module Queued
      # A queue whose entries count until they are answered.
      # @api private
      class Outbox
        # What waits. Two of the same bytes are two.
        class Entry
          # @return [String] as they are sent, or a message that is encoded then
          attr_reader :bytes
          # @return [Boolean] may be sent again
          attr_reader :publish
          # @return [Proc, nil] gets the reply
          attr_accessor :block
          # @return [Boolean] it would be of no use later, see {Outbox#push}
          attr_reader :passing

          # @param bytes [String]
          # @param publish [Boolean]
          # @param block [Proc, nil]
          # @param passing [Boolean]
          def initialize(bytes, publish, block, passing: false)
            @bytes = bytes
            @publish = publish
            @block = block
            @passing = passing
          end
        end

        # Of those that are of no use later: their part of the limits, and seconds without any answer after which
        # they would be late.
        PART = 4
        LATE = 2.0

        # @param count [Integer]
        # @param bytes [Integer]
        # @param on_lost [#call] gets an entry that may or may not have been executed
        # @param clock [#call] seconds
        def initialize(count, bytes, on_lost:, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @count_max = count
          @bytes_max = bytes
          @on_lost = on_lost
          @clock = clock
          @waiting = []
          @count = @bytes = @passing = @passing_bytes = @aside = @aside_bytes = 0
          @moved_at = 0
        end

        # @return [Integer] entries without an answer
        attr_reader :count
        # @return [Integer] of them, those that are of no use later
        attr_reader :passing

        # @return [Boolean] whether everything is answered
        def empty?
          @count.zero?
        end

        # @param entry [Entry]
        # @return [Boolean] false when there is no room
        def push(entry)
          return false if @count >= @count_max || @bytes + entry.bytes.bytesize > @bytes_max
          return false if entry.passing && !passes?(entry.bytes.bytesize)

          @moved_at = @clock.call if idle?
          account(entry, 1)
          @waiting << entry
          true
        end

        # Takes the first one, if the block agrees.
        # @yieldparam entry [Entry]
        # @return [Entry, nil]
        def shift
          @waiting.shift if @waiting.any? && yield(@waiting.first)
        end

        # It waits somewhere else (held.rb, streams/returned.rb). It keeps its room, and does not mean that the server
        # answers nothing.
        # @param entry [Entry]
        # @return [void]
        def set_aside(entry, sign = 1)
          @moved_at = @clock.call
          @aside += sign
          @aside_bytes += sign * entry.bytes.bytesize
        end

        # It does not wait there any more.
        # @param entry [Entry]
        # @return [void]
        def take_up(entry)
          set_aside(entry, -1)
        end

        # @return [Boolean] whether those have all the room but a part, which is for others
        def crowded?
          @aside.positive? && (@aside >= @count_max - [@count_max / PART, 1].max ||
                               @aside_bytes >= @bytes_max - (@bytes_max / PART))
        end

        # @param entry [Entry] was answered
        # @return [void]
        def done(entry)
          @moved_at = @clock.call
          account(entry, -1)
        end

        # What had no answer when the connection went. A message goes out again, rather twice than never; what
        # else was begun may have been executed, which only the caller can judge. What is of no use later ends here.
        # @param unanswered [Array<Array(Entry, Boolean)>] oldest first; whether it was begun
        # @return [void]
        def requeue(unanswered)
          entries = unanswered.select { |entry, _| entry.is_a?(Entry) }
          again, lost = entries.partition { |entry, is_begun| entry.publish || !is_begun }
          @waiting.unshift(*again.map(&:first))
          @aside = @aside_bytes = 0
          late, @waiting = @waiting.partition(&:passing) if @passing.positive?
          late&.each { |entry| done(entry) }
          lost.map(&:first).each do |entry|
            done(entry)
            @on_lost.call(entry)
          end
        end

        # Nothing waits any more: what is no message, or of no use later, ends here.
        # @param unanswered [Array<Array(Entry, Boolean)>] as of {#requeue}
        # @return [Array<Entry>] messages without an answer, oldest first
        def take_all(unanswered)
          waiting = @waiting
          @waiting = []
          requeue([*unanswered.map(&:first), *waiting].map { |entry| [entry, true] })
          all = @waiting.uniq # the thread may have ended in the middle of {#requeue}
          @waiting = []
          all.each { |entry| done(entry) }
        end

        # @return [String]
        def limits
          "#{@count_max} commands, #{@bytes_max >> 20} MiB"
        end

        private

        # What is set aside waits for no answer.
        def idle?
          @count == @aside
        end

        # A server that answers nothing may have stopped: what others heard later would be old. A crowd of such entries
        # leaves the room to others.
        def passes?(bytes)
          return true if idle?

          @passing < [@count_max / PART, 1].max && @passing_bytes + bytes <= @bytes_max / PART &&
            @clock.call - @moved_at < LATE
        end

        def account(entry, sign)
          bytes = sign * entry.bytes.bytesize
          @count += sign
          @bytes += bytes
          return unless entry.passing

          @passing += sign
          @passing_bytes += bytes
        end
      end
    end
  end
end
