# frozen_string_literal: true

# Publishing and subscribing without a client, and the engines that carry messages further.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engines"
require "rondo/pubsub/local"
require "rondo/pubsub/presence/client"

# Channels of the server; see docs/PUSH.md.

module Rondo
  autoload :Presence, "rondo/pubsub/presence"

  class << self
    # Any thread of a process that serves; with an engine such as Redis, of any process.
    # @param channel [String, Symbol]
    # @param message [String, Hash, Array] UTF-8 and US-ASCII are text, other encodings binary, a Hash or an
    #   Array goes as JSON
    # @param engine [Object, false, nil] nil for the default one, false for this process only
    # @return [Boolean] whether it is on its way
    # @raise [ArgumentError, TypeError] for a name or a message that is not valid
    def publish(channel, message, engine = nil)
      PubSub.publish(channel, message, engine)
    end

    # Messages of a channel go to the block, one after the other, on an application thread of each process
    # that serves. Subscribing again replaces.
    # @overload subscribe(channel, is_pattern = false, match: nil, as: nil, since: nil)
    #   @param channel [String, Symbol]
    #   @param is_pattern [Boolean]
    #   @param match [Symbol, nil] :redis for a pattern
    #   @param as [Symbol, nil] :text or :binary, whatever a message was published as
    #   @param since [Integer, String, Time, nil] what came later and was kept comes first
    #   @yieldparam channel [String]
    #   @yieldparam message [String]
    #   @yieldparam id [Integer, nil] in the history
    #   @return [true]
    #   @raise [ArgumentError, TypeError]
    def subscribe(...)
      PubSub.subscribe(...)
    end

    # @overload unsubscribe(channel, is_pattern = false, match: nil)
    #   @param channel [String, Symbol]
    #   @param is_pattern [Boolean]
    #   @param match [Symbol, nil]
    #   @return [Boolean] whether there was one
    def unsubscribe(...)
      PubSub.unsubscribe(...)
    end
  end
end
