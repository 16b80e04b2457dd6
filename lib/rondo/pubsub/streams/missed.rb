# frozen_string_literal: true

# What was missed and read from streams, until all of it is here and can be sorted. Used by tracks.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/kept"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # Items of all channels, within a limit: what was missed for long may be more than this process has room for.
      # @api private
      class Missed
        # @param most [Integer] bytes; above them the older half is lost
        def initialize(most)
          @most = most
          clear
        end

        # @return [Boolean]
        def any?
          @items.any?
        end

        # @return [Array<Queued::Item>]
        def to_a
          @items
        end

        # @param item [Queued::Item]
        # @return [void]
        def <<(item)
          @items << item
          @bytes += item.bytes
          cut if @bytes > @most
        end

        # @return [void]
        def clear
          @items = []
          @bytes = 0
        end

        private

        # The newest ones stay, over all channels, and a gap in each channel that has lost something.
        def cut
          items = @items.sort_by(&:id)
          gaps = {}
          while @bytes > @most / 2 && items.size > 1
            item = items.shift
            @bytes -= item.bytes
            gaps[item.channel] = Queued::Item.new(item.channel, item.began, 0, item.id)
          end
          @items = gaps.values.concat(items)
          @bytes = @items.sum(&:bytes)
        end
      end
    end
  end
end
