# backtick_javascript: true
# frozen_string_literal: true

# Which engine carries a published message, and which engines are notified of subscriptions (engine/pubsub.js does
# that). The meaning is that of the server on MRI.
# SPDX-License-Identifier: MIT

module Rondo
  # Engines.
  module PubSub
    # The interface of an engine; whatever answers these three may be one, this class or not. None of them may wait.
    class Engine
      # The first subscriber is there.
      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def subscribe(channel, is_pattern); end

      # The last subscriber is gone.
      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def unsubscribe(channel, is_pattern); end

      # @param channel [String]
      # @param message [String]
      # @return [Boolean] whether it will be sent
      def publish(channel, message)
        raise NotImplementedError, "#{self.class} must define publish(channel, message)"
      end

      # @param seconds [Numeric] to wait at most
      # @return [Integer] messages that were not sent
      def flush(seconds)
        0
      end

      # @param seconds [Numeric] for `flush`
      # @return [void]
      def close(seconds = 0); end
    end

    # Subscribers of this server, and no others. It is told nothing.
    class BuiltIn < Engine
      # @param name [String] of the constant
      # @param reach [Symbol] as `send_to` has it
      def initialize(name, reach)
        super()
        @name = name
        @reach = reach
      end

      # @return [Boolean]
      def publish(channel, message)
        PubSub.send_to(channel, message, @reach)
      end

      # @return [String]
      def inspect
        "Rondo::PubSub::#{@name}"
      end
    end

    # Every subscriber of all workers: the default.
    CLUSTER = BuiltIn.new("CLUSTER", :cluster)
    # The engine in the master, if there is one: then it is the default.
    MASTER = BuiltIn.new("MASTER", :engine)
    # The subscribers of this process; what an engine has from outside goes here.
    PROCESS = BuiltIn.new("PROCESS", :process)
    # The subscribers of the other processes.
    SIBLINGS = BuiltIn.new("SIBLINGS", :siblings)

    class << self
      # @return [Object] what carries a message when the caller names no engine
      def default
        @default ||= `Opal.rondo.bus.engines.isMasterUsed()` ? MASTER : CLUSTER
      end

      # @param engine [#subscribe, #unsubscribe, #publish] is attached, too
      def default=(engine)
        attach(engine)
        @default = engine
      end

      # From now on the engine is notified of subscriptions, first of those that exist.
      # @param engine [#subscribe, #unsubscribe, #publish]
      # @return [void]
      # @raise [ArgumentError]
      def attach(engine)
        missing = %i[subscribe unsubscribe publish].reject { |name| engine.respond_to?(name) }
        raise ArgumentError, "an engine must respond to #{missing.join(", ")}" if missing.any?

        `Opal.rondo.bus.engines.attach(engine)` unless engine.is_a?(BuiltIn)
        nil
      end

      # @param engine [Object] gets no more notices
      # @return [void]
      def detach(engine)
        `Opal.rondo.bus.engines.detach(engine)`
        @default = CLUSTER if default.equal?(engine)
        nil
      end

      # Tells the engine all current subscriptions again.
      # @param engine [Object]
      # @return [void]
      def reset(engine)
        `Opal.rondo.bus.engines.reset(engine)`
        nil
      end

      # @return [Boolean]
      # @raise [ArgumentError, TypeError]
      def publish(channel, message, engine = nil)
        engine = engine.nil? ? default : engine || PROCESS
        return engine.publish(channel, message) if engine.is_a?(BuiltIn)

        text = string_of(message)
        valid(`Opal.rondo.text.wire(text)`)
        `Opal.rondo.bus.engines.hand(engine, #{name(channel)}, text)`
      end
    end
  end
end
