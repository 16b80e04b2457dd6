# frozen_string_literal: true

# Engines of pub/sub with iodine's interface, over those of Rondo. redis.rb has that of Redis.
# SPDX-License-Identifier: MIT

module Iodine
  # Engines carry messages between processes and machines.
  module PubSub
    # The parent of engines. Those that are attached are called with each channel that gets its first subscriber or
    # loses its last one; what is published to an engine is given to its `publish`.
    class Engine
      # @param to [String] a channel, or a pattern
      # @param match [true, nil] whether it is a pattern
      # @return [void]
      def subscribe(to, match); end

      # @param to [String]
      # @param match [true, nil]
      # @return [void]
      def unsubscribe(to, match); end

      # @param to [String]
      # @param message [String]
      # @return [void]
      def publish(to, message); end

      # @api private
      # @return [Object] the engine that Rondo calls
      def outlet
        @outlet ||= Outlet.new(self)
      end

      # What is published before the start.
      # @api private
      # @return [Boolean]
      def publish_later(name, message)
        outlet.publish(name, message)
      end

      # @api private
      # @return [Boolean] whether it is called with subscriptions
      attr_accessor :attached
    end

    # What Rondo calls in place of an engine.
    # @api private
    class Outlet
      # @param engine [Engine]
      def initialize(engine)
        @engine = engine
      end

      def subscribe(channel, is_pattern)
        @engine.subscribe(channel.b, is_pattern || nil) if @engine.attached
      end

      def unsubscribe(channel, is_pattern)
        @engine.unsubscribe(channel.b, is_pattern || nil) if @engine.attached
      end

      def publish(channel, message)
        @engine.publish(channel.b, message.b)
        true
      end
    end
    private_constant :Outlet

    # An engine of the server.
    # @api private
    class BuiltIn < Engine
      # @return [Object] for Rondo.publish
      attr_reader :outlet

      # @param outlet [Object]
      # @param name [String]
      def initialize(outlet, name)
        super()
        @outlet = outlet
        @name = name
      end

      def publish(to, message)
        PubSub.send_to(self, Base.name_of(to), message)
        self
      end

      # The message waits in each process that will serve, for those who subscribe before.
      def publish_later(name, message)
        here = Rondo::PubSub::PROCESS # in all of them
        Base.add_task(:run, -> { Rondo.publish(name, message, here) }) unless equal?(SIBLINGS)
        true
      end

      def inspect
        "#<Iodine::PubSub::Engine #{@name}>"
      end

      # Iodine has no class for it.
      def class
        Engine
      end
    end
    private_constant :BuiltIn

    # All subscribers of this server.
    CLUSTER = BuiltIn.new(Rondo::PubSub::CLUSTER, "CLUSTER")
    # The subscribers of this process.
    PROCESS = BuiltIn.new(Rondo::PubSub::PROCESS, "PROCESS")
    # The subscribers of the other processes; with one process there are none.
    SIBLINGS = BuiltIn.new(Rondo::PubSub::SIBLINGS, "SIBLINGS")
    # The subscribers of the root, which is this process if there is one alone.
    PUBLISH2ROOT = BuiltIn.new(Rondo::PubSub::ROOT, "PUBLISH2ROOT")

    @default = CLUSTER

    class << self
      # @return [Engine] of a publish that names none
      attr_reader :default

      # @param engine [Engine, nil] nil: {CLUSTER}
      # @raise [TypeError]
      def default=(engine)
        engine = CLUSTER if engine.nil?
        check(engine)
        @default = engine
        Rondo::PubSub.default = engine.outlet unless engine.is_a?(Redis) && engine.given_to_server?
      end

      # The engine is called with all subscriptions, also with those that there are.
      # @param engine [Engine]
      # @return [Engine]
      # @raise [TypeError]
      def attach(engine)
        check(engine)
        engine.attached = true
        Rondo::PubSub.attach(engine.outlet)
        Rondo::PubSub.reset(engine.outlet)
        engine
      end

      # @param engine [Engine]
      # @return [Engine]
      # @raise [TypeError]
      def detach(engine)
        check(engine)
        engine.attached = false
        Rondo::PubSub.detach(engine.outlet) unless @default.equal?(engine)
        engine
      end

      # The engine is called with all subscriptions again.
      # @param engine [Engine]
      # @return [Engine]
      # @raise [TypeError]
      def reset(engine)
        check(engine)
        Rondo::PubSub.reset(engine.outlet)
        engine
      end

      # @api private
      # @return [Boolean]
      def send_to(engine, name, message)
        engine = PROCESS if engine == false
        check(engine) if engine
        return Rondo.publish(name, message, engine&.outlet) if Base.begun?

        (engine || @default).publish_later(name, message)
      end

      private

      def check(engine)
        Base.check(engine, Engine, "IodinePubSubData")
      end
    end
  end
end
