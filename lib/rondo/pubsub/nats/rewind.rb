# frozen_string_literal: true

# Clients were here before this engine was: after a restart by exec the hub says what they have seen, and they get what
# came after it. A part of stream.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # What is old is read by a consumer of its own. If that ends before all is read, the next one begins at the same
      # place.
      # @api private
      module Rewind
        private

        # They have seen an id above the time of the newest message, but that message may have it.
        def claim(state)
          if @rewind && @rewind > @mark_us && (@sequence.zero? || state["messages"].to_i.positive?)
            @claimed = @rewind
            @rewind = nil
          end
          tell_begin
        end

        # Where channels begin that are followed from now on. Nothing is owed before it.
        def tell_begin
          return if @has_told_begin || @began.nil? || @tracks.empty?

          @has_told_begin = true
          @outlet.begins_at(@top) unless @rewind || @claimed
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

        # The first one is what clients have seen last, or that one is missing.
        def read_old(stored)
          @is_holed = true if @read ? stored.sequence > @read + 1 : stored.id != @rewind
          @read = stored.sequence
          collect(stored) if stored.sequence <= @sequence
          return unless @consumer
          return go_on if stored.sequence >= @sequence

          ended(stored.sequence) if stored.pending.zero?
        end

        def take_old(stored)
          track = @tracks[stored.channel]
          return true unless track && stored.id > track.last

          give_item(track, stored) || later
        end

        def go_on
          return unless release(false)

          @rewind = nil
          consume
        end
      end
    end
  end
end
