# backtick_javascript: true
# frozen_string_literal: true

# Rondo's interface for applications that run on Node. The server is JavaScript and known here as `Opal.rondo`.
# SPDX-License-Identifier: MIT

# The names that an application knows from Rondo on MRI.
module Rondo
  # The base of what Rondo raises.
  class Error < StandardError; end

  # What is wrong with a setting: one line.
  class ConfigurationError < Error; end

  # The client of a response left.
  class ClientGone < IOError; end

  # The body of a request did not come to its end.
  class BodyError < EOFError; end

  # What the application returned is not an answer.
  class ResponseError < Error; end

  class << self
    # @param channel [String, Symbol]
    # @param message [String, Hash, Array]
    # @param engine [Object, nil, false] nil: the default, false: this process only
    # @return [Boolean] whether it is on its way
    def publish(channel, message, engine = nil)
      PubSub.publish(channel, message, engine)
    end

    # Calls the block with each message of a channel, in this process.
    # @return [true, nil]
    def subscribe(channel, is_pattern = false, match: nil, since: nil, &block)
      raise ArgumentError, "a subscription without a client needs a block" unless block

      PubSub.subscribe_block(channel, PubSub.pattern?(is_pattern, match), since, block)
    end

    # @return [Boolean] whether there was such a subscription
    def unsubscribe(channel, is_pattern = false, match: nil)
      PubSub.unsubscribe_block(channel, PubSub.pattern?(is_pattern, match))
    end
  end
end

require "rondo/pubsub"
require "rondo/pubsub/engines"
require "rondo/pubsub/redis"
require "rondo/client"
require "rondo/input"
require "rondo/errors"
require "rondo/stream"
