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

          # @param bytes [String]
          # @param publish [Boolean]
          # @param block [Proc, nil]
          def initialize(bytes, publish, block)
            @bytes = bytes
            @publish = publish
            @block = block
          end
        end

        # @param count [Integer]
        # @param bytes [Integer]
        # @param on_lost [#call] gets an entry that may or may not have been executed
        def initialize(count, bytes, on_lost:)
          @count_max = count
          @bytes_max = bytes
          @on_lost = on_lost
          @waiting = []
          @count = @bytes = 0
        end

        # @return [Integer] entries without an answer
        attr_reader :count

        # @return [Boolean] whether everything is answered
        def empty?
          @count.zero?
        end

        # @param entry [Entry]
        # @return [Boolean] false when there is no room
        def push(entry)
          return false if @count >= @count_max || @bytes + entry.bytes.bytesize > @bytes_max

          @count += 1
          @bytes += entry.bytes.bytesize
          @waiting << entry
          true
        end

        # Takes the first one, if the block agrees.
        # @yieldparam entry [Entry]
        # @return [Entry, nil]
        def shift
          @waiting.shift if @waiting.any? && yield(@waiting.first)
        end

        # It has no answer yet after all, and goes before the others.
        # @param entry [Entry]
        # @return [void]
        def put_back(entry)
          @waiting.unshift(entry)
        end

        # @param entry [Entry] was answered
        # @return [void]
        def done(entry)
          @count -= 1
          @bytes -= entry.bytes.bytesize
        end

        # What had no answer when the connection went. A message goes out again, rather twice than never; what
        # else was begun may have been executed, which only the caller can judge.
        # @param unanswered [Array<Array(Entry, Boolean)>] oldest first; whether it was begun
        # @return [void]
        def requeue(unanswered)
          entries = unanswered.select { |entry, _| entry.is_a?(Entry) }
          again, lost = entries.partition { |entry, is_begun| entry.publish || !is_begun }
          @waiting.unshift(*again.map(&:first))
          lost.map(&:first).each do |entry|
            done(entry)
            @on_lost.call(entry)
          end
        end

        # @return [String]
        def limits
          "#{@count_max} commands, #{@bytes_max >> 20} MiB"
        end
      end
    end
  end
end
