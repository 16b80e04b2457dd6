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
    # @overload publish(channel, message, engine = nil, confirm: nil)
    #   @param channel [String, Symbol]
    #   @param message [String, Hash, Array] UTF-8 and US-ASCII are text, other encodings binary, a Hash or an
    #     Array goes as JSON
    #   @param engine [Object, false, nil] nil for the default one, false for this process only
    #   @param confirm [Numeric, true, nil] waits until the engine has the message: seconds at most; true for 5
    #   @yieldparam result [Integer, Boolean] as it is returned with confirm:, on a thread of its own; with a block
    #     nobody waits
    #   @return [Boolean] whether it is on its way
    #   @return [Integer, Boolean] with confirm: and without a block: the id of a message that the engine keeps; true:
    #     the engine has it; false: it does not take it, or did not say so in time
    #   @raise [ArgumentError, TypeError] for a name or a message that is not valid
    #   @raise [Error] with confirm: an engine that cannot say that
    def publish(channel, message, engine = nil, options = nil, &block)
      return PubSub.publish(channel, message, engine) unless options || block || engine.instance_of?(Hash)

      engine, options = nil, engine if engine.instance_of?(Hash)
      PubSub.publish_confirmed(channel, message, engine, options || {}, block)
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
