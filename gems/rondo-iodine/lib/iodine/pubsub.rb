# frozen_string_literal: true

# Engines of pub/sub with iodine's interface, over those of Rondo.
# SPDX-License-Identifier: MIT

module Iodine
  # Engines carry messages between processes and machines.
  module PubSub
    # The parent of engines. Those that are attached are called with each channel that gets its first subscriber or
    # loses its last one, and with what is published to them.
    class Engine
      # @param to [String] a channel, or a pattern
      # @param match [true, nil] whether it is a pattern
      def subscribe(to, match = nil); end

      # @param to [String]
      # @param match [true, nil]
      def unsubscribe(to, match = nil); end

      # @param to [String]
      # @param message [String]
      def publish(to, message); end
    end

    # An engine that the server has: its `publish` is the server's.
    # @api private
    class BuiltIn < Engine
      # @return [Object, nil] for Rondo.publish
      attr_reader :engine

      # @param engine [Object, nil]
      # @param name [String]
      def initialize(engine, name)
        super()
        @engine = engine
        @name = name
      end

      def publish(to, message)
        Rondo.publish(Base.name_of(to), message, @engine)
        self
      end

      def inspect
        @name
      end

      def self.name
        "Iodine::PubSub::Engine"
      end

      def class
        Engine
      end
    end
    private_constant :BuiltIn

    # All subscribers of this server.
    CLUSTER = BuiltIn.new(Rondo::PubSub::CLUSTER, "Iodine::PubSub::CLUSTER")
    # The subscribers of this process.
    PROCESS = BuiltIn.new(Rondo::PubSub::PROCESS, "Iodine::PubSub::PROCESS")

    class << self
      # @api private
      # @return [Boolean]
      def send_to(engine, name, message)
        return Rondo.publish(name, message, engine) if engine.nil? || engine == false

        check(engine)
        Rondo.publish(name, message, outlet(engine))
      end

      private

      def check(engine)
        Base.check(engine, Engine, "IodinePubSubData")
      end

      def outlet(engine)
        engine.engine
      end
    end
  end
end
