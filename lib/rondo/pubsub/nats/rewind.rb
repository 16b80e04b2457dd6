# frozen_string_literal: true

# Clients were here before this engine was: after a restart by exec the hub says what they have seen, and they get what
# came after it. A part of stream.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # What is old is read by a consumer of its own. Where one ends too early the next one begins anew.
      # @api private
      module Rewind
        private

        # They have seen an id above the time of the newest message, but that message may have it.
        def claim(state)
          return unless @rewind && @rewind > @mark_us && (@sequence.zero? || state["messages"].to_i.positive?)

          @claimed = @rewind
          @rewind = nil
        end

        # The stream has no message with that id, so it is another one, or an older one.
        def judge
          claimed = @claimed
          @claimed = nil
          return if claimed.nil? || claimed == @top

          @tracks.each_value { |track| track.last = [track.last, @top].min }
          @floor = @top
          @gaps.lose_all(@top)
        end

        def read_old(stored)
          track = @tracks[stored.channel]
          is_new = track && stored.id > track.last && stored.sequence <= @sequence
          return later if is_new && !hand_on(track, stored)
          return go_on if stored.sequence >= @sequence

          ended if stored.pending.zero?
        end

        def go_on
          @rewind = nil
          consume
        end
      end
    end
  end
end
