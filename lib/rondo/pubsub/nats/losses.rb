# frozen_string_literal: true

# Whether a stream still has what was read of it. A NATS that lost its power before it had written all, or a backup, has
# an older state. Others may have written since, at the same numbers. A part of stream.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # Reading goes on at the last message that was read, so that it can be compared.
      # @api private
      module Losses
        # Seconds until a NATS is asked again that has less than was read of it.
        DOUBT = 1.0

        private

        # Who has just become the leader may still read its log.
        def doubt
          @is_doubted = true
          @retry_at = now + DOUBT
        end

        # Where reading goes on is a message that was read before, unless the stream has lost it.
        def compare(stored)
          if stored.sequence == @sequence
            return lose_end(@sequence) if @mark && stored.id != @mark

            reach(stored)
            raise_top(stored.id)
          end
          ended(stored.sequence) if stored.pending.zero? && @consumer && !@is_live
        end

        # The id of the newest message may be above its time, which is what was known. "From now on" is behind it.
        def raise_top(id)
          return if id <= @top

          @tracks.each_value { |track| track.last = id if track.last == @top }
          @top = id
        end

        # What the stream had last is lost. Others may have written at those numbers since, but not before that time.
        def lose_end(last)
          @awaited.lost([last, @sequence].min)
          @floor = @top
          @gaps.lose_all(@top)
          @sequence = last
          @mark = nil
          @behind_us = @mark_us + 1
          consume
        end

        # NATS may begin before the time.
        def pass_older(stored)
          ended(stored.sequence) if stored.pending.zero?
        end

        def go_on_before(stored)
          @read = @sequence = stored.sequence - 1
          @behind_us = nil
        end
      end
    end
  end
end
