# frozen_string_literal: true

# What engines that keep messages, and the hub that has copies of them, say to each other.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    module Queued
      # How much of a channel is kept.
      # @!attribute messages [Integer] at most
      # @!attribute ttl_ms [Integer] 0: for ever
      # @!attribute limit [Integer, nil] bytes of its messages; nil: any number
      # @api private
      Terms = Struct.new(:messages, :ttl_ms, :limit)

      # A message that is kept, or the notice of a gap (text is nil).
      # @!attribute channel [String]
      # @!attribute began [Integer] the id at which the store began; 0: it does not matter
      # @!attribute previous [Integer] id of the message before it in the channel; 0: it does not matter
      # @!attribute id [Integer]
      # @!attribute kind [String] "t" for text, "b" for binary
      # @!attribute text [String, nil]
      # @api private
      Item = Struct.new(:channel, :began, :previous, :id, :kind, :text) do
        # @return [Integer] that it takes here
        def bytes
          (text ? text.bytesize : 0) + self.class::OWN
        end
      end
      # Bytes of one without a text.
      # @api private
      Item::OWN = 256
    end
  end
end
