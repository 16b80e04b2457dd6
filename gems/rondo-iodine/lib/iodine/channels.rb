# frozen_string_literal: true

# Publishing, and subscriptions without a client: Rondo's own (docs/PUSH.md) with iodine's arguments and answers.
# SPDX-License-Identifier: MIT

require "iodine/pubsub"
require "iodine/redis"

module Iodine
  # @api private
  module Base
    # What the arguments of `subscribe` say.
    Wish = Struct.new(:given, :name, :match, :binary, :block, keyword_init: true) do
      # @param arguments [Array<Object>] a channel, a Hash, or both
      # @param block [Proc, nil]
      # @return [Wish]
      # @raise [ArgumentError, TypeError]
      def self.read(arguments, block)
        raise ArgumentError, "method accepts 1 or 2 arguments." unless arguments.size.between?(1, 2)

        channel, options = arguments
        channel, options = [Base.channel_in(channel), channel] if options.nil? && channel.is_a?(Hash)
        raise ArgumentError, "a target (:to) subject / stream / channel is required." unless channel

        name = Base.name_of(channel)
        options ||= {}
        Base.check(options, Hash)
        new(given: channel, name: name, match: options[:match] == :redis ? :redis : nil,
            binary: options[:as] == :binary, block: options[:handler] || block)
      end
    end

    class << self
      # @param channel [String, Symbol]
      # @return [String]
      # @raise [TypeError]
      def name_of(channel)
        channel = channel.name if channel.is_a?(Symbol)
        check(channel, String)
        channel
      end

      # @param options [Hash]
      # @return [Object, nil]
      def channel_in(options)
        return options[:to] if options[:to]

        warning("use of :channel in subscribe is deprecated.") if options[:channel]
        options[:channel]
      end

      # @param wish [Wish] of a subscription without a client
      # @return [void]
      def add_subscription(wish)
        @changing.synchronize do
          end_subscription(wish.name)
          block = ->(name, message, *) { guard { wish.block.call(name.b, message.b) } }
          @subscriptions[wish.name] = [wish.match == :redis, block]
          place.subscribe(wish.name, match: wish.match, &block)
        end
      end

      # @param name [String]
      # @return [Boolean] whether there was one
      def remove_subscription(name)
        @changing.synchronize { end_subscription(name) }
      end

      # The root of a cluster has those that were asked for before the start, too.
      # @return [void]
      def begin_subscriptions
        @subscriptions.each { |name, (is_pattern, block)| Rondo::Root.subscribe(name, is_pattern, &block) }
      end

      private

      # @return [Module] where this process subscribes
      def place
        root? ? Rondo::Root : Rondo
      end

      def end_subscription(name)
        is_pattern, = @subscriptions.delete(name)
        return false if is_pattern.nil?

        place.unsubscribe(name, is_pattern)
        true
      end
    end
    @subscriptions = {} # by name: whether it is a pattern, and the block
    @changing = Mutex.new
  end

  class << self
    # Messages go to the block, in each process. Subscribing again to a name replaces.
    # @overload subscribe(channel, options = {})
    #   @param channel [String, Symbol]
    #   @param options [Hash] match: :redis for a pattern; handler: in place of the block
    #   @yieldparam channel [String] in BINARY
    #   @yieldparam message [String] in BINARY
    #   @return [String, Symbol] the channel
    #   @raise [ArgumentError, TypeError]
    def subscribe(*arguments, &block)
      wish = Base::Wish.read(arguments, block)
      Base.add_subscription(wish) if wish.block
      wish.given
    end

    # @param channel [String, Symbol]
    # @return [Boolean] whether there was a subscription
    # @raise [TypeError]
    def unsubscribe(channel)
      Base.remove_subscription(Base.name_of(channel))
    end

    # @overload publish(channel, message, engine = nil)
    #   @param channel [String, Symbol]
    #   @param message [String]
    #   @param engine [PubSub::Engine, false, nil] nil: the default one; false: this process only
    #   @return [Boolean] true, also before {start}: then the message comes when the server begins; false when there was
    #     no room for it
    #   @raise [ArgumentError, TypeError]
    def publish(*arguments)
      channel, message, engine = Base.publication(arguments)
      raise ArgumentError, "message is required." unless message

      Base.check(message, String)
      raise ArgumentError, "target / channel is required ." unless channel

      name = Base.name_of(channel)
      message = message.b unless message.encoding == Encoding::UTF_8 && message.valid_encoding?
      PubSub.send_to(engine, name, message)
    end
  end

  # @api private
  module Base
    # @return [Array(Object, Object, Object)] channel, message, engine
    def self.publication(arguments)
      raise ArgumentError, "method accepts 1-3 arguments." unless arguments.size.between?(1, 3)
      return arguments if arguments.size > 1

      options = arguments.first
      check(options, Hash)
      [options[:to] || options[:channel], options[:message], options[:engine]]
    end
  end
end
