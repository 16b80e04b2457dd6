# frozen_string_literal: true

# How far channels of a stream were delivered here, and what of them is lost. Used by stream.rb.
# Under the engine's mutex.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/kept"

module Rondo
  module PubSub
    class Nats < Engine
      # How far a channel was delivered here.
      # @!attribute last [Integer] id of the message that was delivered last
      # @!attribute gap [Integer, nil] up to where messages are lost, as was told last
      # @api private
      Track = Struct.new(:last, :gap)

      # What is lost and is to be told, at most one gap for each channel.
      # @api private
      class Gaps
        # @param tracks [Hash{String => Track}]
        # @param outlet [#item]
        def initialize(tracks, outlet)
          @tracks = tracks
          @outlet = outlet
          @gaps = {}
        end

        # @param channel [String]
        # @param id [Integer] up to where messages may be lost
        # @return [void]
        def lose(channel, id)
          track = @tracks[channel] or return
          id = [id, track.last, @gaps[channel].to_i].max
          @gaps[channel] = id unless track.gap == id
        end

        # @param id [Integer] of all channels
        # @return [void]
        def lose_all(id)
          @tracks.each_key { |channel| lose(channel, id) }
        end

        # @param channel [String]
        # @return [void]
        def forget(channel)
          @gaps.delete(channel)
        end

        # @return [Boolean] false: the hub does not take all of them now
        def tell
          @gaps.delete_if do |channel, id|
            track = @tracks[channel] or next true
            @outlet.item(Queued::Item.new(channel, 0, 0, id)) and track.gap = id
          end
          @gaps.empty?
        end
      end
    end
  end
end
