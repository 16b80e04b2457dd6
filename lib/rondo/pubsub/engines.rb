# frozen_string_literal: true

# Which engine carries a published message, and which engines are notified of subscriptions. local.rb has the pub/sub
# of this process, docs/PUSH.md the manual.
# SPDX-License-Identifier: MIT

require "rondo/logger"
require "rondo/pubsub/confirms"
require "rondo/pubsub/engine"
require "rondo/pubsub/notices"
require "rondo/pubsub/redis"

module Rondo
  # Engines: the default one, those that are attached, and the subscriptions they are notified of.
  module PubSub
    autoload :RedisStreams, "rondo/pubsub/redis_streams"

    # What a block or an engine of the application may raise: a line of the log, and the thread that called it goes on.
    # @api private
    ERRORS = [StandardError, ScriptError, NoMemoryError, SystemStackError].freeze

    # Subscribers of this server, and no others. It is told nothing.
    # @api private
    class BuiltIn < Engine
      # @param name [String] of the constant
      # @param reach [Symbol] as {publish_to} has it
      def initialize(name, reach)
        super()
        @name = name
        @reach = reach
      end

      def publish(channel, message)
        PubSub.publish_to(@reach, channel, message)
      end

      # @return [String]
      def inspect
        "Rondo::PubSub::#{@name}"
      end
    end
    private_constant :BuiltIn

    # Every subscriber of all workers of this server: the default.
    CLUSTER = BuiltIn.new("CLUSTER", :cluster)
    # The engine of the settings, if it runs once for all workers, in the master: the default there.
    MASTER = BuiltIn.new("MASTER", :engine)

    # The subscribers of this process; what an engine has from outside goes here. In a master that runs an
    # engine for its workers they are all of these.
    PROCESS = Class.new(BuiltIn) do
      def publish(channel, message)
        outlet = PubSub.outlet or return PubSub.publish_here(channel, message)
        outlet.publish_here(*PubSub.plain(channel, message))
      end
    end.new("PROCESS", :process)

    # The subscribers of the other processes of this server, those of its first process included. Without workers there
    # are none.
    SIBLINGS = BuiltIn.new("SIBLINGS", :siblings)
    # The subscribers of the first process, which are blocks of {Root}. Without workers it is this one.
    ROOT = BuiltIn.new("ROOT", :root)

    # The encodings that are sent as text.
    # @api private
    TEXT = [Encoding::UTF_8, Encoding::US_ASCII].freeze

    # @api private
    CANNOT_CONFIRM = "the pub/sub engine cannot say that it has a message: publish without confirm"

    @default = CLUSTER
    # Seconds in which engines are notified, at the end of a server, that it has no subscribers any more.
    # @api private
    FAREWELL = 1

    @told = {}.compare_by_identity # by engine: its Notices
    @telling = Mutex.new # a change of subscriptions and the notices of it are one step

    class << self
      # @return [Engine] of a publish that names none
      attr_reader :default
      # @return [#publish_here, nil] who takes what comes from outside instead of this process
      # @api private
      attr_accessor :outlet
      # @api private
      # @return [Logger] for engines
      attr_writer :log

      # Where engines write what goes wrong.
      # @return [#info, #warn, #error] errors only, unless a server runs here
      def log
        @log ||= Logger.new(quiet: true)
      end

      # Sets it, and attaches it.
      # @param engine [#subscribe, #unsubscribe, #publish]
      # @return [void]
      # @raise [ArgumentError] it lacks one of these methods
      def default=(engine)
        attach(engine)
        # Unless it was detached while it was notified of the current subscriptions.
        @default = engine if built_in?(engine) || @told.key?(engine)
      end

      # From now on the engine is notified of subscriptions, first of those that exist, on a thread of its own.
      # @param engine [#subscribe, #unsubscribe, #publish]
      # @return [void]
      # @raise [ArgumentError] it lacks one of these methods
      def attach(engine)
        check(engine)
        @telling.synchronize do
          return if built_in?(engine) || @told.key?(engine)

          @told[engine] = Notices.new(engine, own_thread: true) { log }
          @told[engine].reset(interests)
        end
      end

      # Does not wait: an engine that does not return from its current notice would keep the process
      # from ending.
      # @param engine [Object] gets no more notices
      # @return [void]
      def detach(engine)
        @told.delete(engine)&.end
        @default = CLUSTER if @default.equal?(engine)
      end

      # Tells the engine all current subscriptions again.
      # @param engine [Object]
      # @return [void]
      def reset(engine)
        @telling.synchronize { @told[engine]&.reset(interests) }
      end

      # Waits until engines have been told of all that has changed so far.
      # @param seconds [Numeric] at most, for all of them
      # @return [Boolean] whether they have, but for calls that raised
      # @api private
      def flush(seconds)
        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        notices = @telling.synchronize { @told.values }
        notices.map { |one| one.flush(limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)) }.all?
      end

      # The same as {Rondo.publish}.
      # @param channel [String, Symbol]
      # @param message [String, Hash, Array]
      # @param engine [Object, false, nil] nil for the default one, false for this process only
      # @return [Boolean] whether it is on its way
      # @raise [ArgumentError, TypeError]
      # @see Rondo.publish
      def publish(channel, message, engine = nil)
        engine = engine.nil? ? @default : engine || PROCESS
        return engine.publish(channel, message) if built_in?(engine)

        hand(engine, *plain(channel, message))
      end

      # The same as {Rondo.publish} with `confirm:` or a block.
      # @param options [Hash{Symbol => Object}]
      # @param block [Proc, nil]
      # @return [Integer, Boolean]
      # @raise [ArgumentError, TypeError, Error]
      # @see Rondo.publish
      # @api private
      def publish_confirmed(channel, message, engine, options, block)
        unknown = options.keys - [:confirm]
        raise ArgumentError, "unknown keyword: #{unknown.first.inspect}" if unknown.any?
        return publish(channel, message, engine) unless options[:confirm] || block

        seconds = Confirms.seconds(options[:confirm] || true)
        engine = engine.nil? ? @default : engine || PROCESS
        cannot_confirm unless confirms?(engine)
        words = plain(channel, message)
        wait = confirms.add(seconds, block) or return false
        return drop(wait) unless hand_with(engine, wait, *words)

        block ? true : result_of(wait)
      end

      # For one who waits for the answers to many messages.
      # @param listener [#wait=, #signal] is told when the result is there, by any thread, under the lock of {Confirms};
      #   `wait` has it
      # @param channel [String]
      # @param message [String]
      # @param seconds [Numeric] after which nobody waits any more: then `confirms.drop(wait)` is to be called
      # @return [Confirms::Wait, Symbol, nil] nil: the message was not accepted, or too many wait; :unable: this engine
      #   cannot answer, and does not get it
      # @raise [ArgumentError, TypeError]
      # @api private
      def publish_for(listener, channel, message, seconds)
        return :unable unless confirms?(@default)

        words = plain(channel, message)
        wait = listener.wait = confirms.add(seconds, nil, listener)
        return wait if wait && hand_with(@default, wait, *words)

        drop(wait) if wait
        nil
      end

      # @return [Confirms] of this process
      # @api private
      def confirms
        @telling.synchronize { @confirms&.mine? ? @confirms : @confirms = Confirms.new }
      end

      # @raise [Error]
      # @api private
      def cannot_confirm
        raise Error, CANNOT_CONFIRM
      end

      # @return [Array(String, String)] name and message
      # @raise [ArgumentError, TypeError]
      # @api private
      def plain(channel, message)
        [name_of(channel), text_of(message)]
      end

      # @return [Array<Symbol>] methods of an engine that the object lacks
      # @api private
      def missing(engine)
        %i[subscribe unsubscribe publish].reject { |name| engine.respond_to?(name) }
      end

      # A channel has its first subscriber in this process, or has lost its last one.
      # @yield whether that is so: what is told next is decided after this has been told
      # @api private
      def interest(channel, is_pattern, subscribed)
        @telling.synchronize do
          @told.each_value { |notices| notices.want(channel, is_pattern, subscribed) } if yield
        end
      end

      private

      def built_in?(engine)
        engine.is_a?(BuiltIn)
      end

      def check(engine)
        missing = missing(engine)
        raise ArgumentError, "an engine must respond to #{missing.join(", ")}" if missing.any?
      end

      # In the form in which clients and subscribers get it.
      def text_of(message)
        case message
        when String
          return message if message.valid_encoding? || !TEXT.include?(message.encoding)

          raise ArgumentError, "the text of the message is not valid UTF-8"
        when Hash, Array
          require "json"
          JSON.generate(message)
        else raise TypeError, "a message must be a String, Hash or Array, not #{message.class}"
        end
      end

      # The engine in the master is asked by the message itself.
      def confirms?(engine)
        built_in?(engine) || (engine.respond_to?(:confirms?) && engine.confirms?)
      end

      # Whatever is raised, nobody waits any more.
      def hand_with(engine, wait, channel, text)
        is_over = false
        result = if engine.equal?(MASTER)
                   note = confirms.note(wait)
                   publish_to(:confirm, channel, text.encoding == Encoding::UTF_8 ? note + text : note.b << text.b)
                 elsif built_in?(engine)
                   engine.publish(channel, text).tap { |done| confirms.resolve(wait.token, true) if done }
                 else
                   hand(engine, channel, text) { |answer| confirms.resolve(wait.token, answer) }
                 end
        is_over = true
        result
      ensure
        drop(wait) unless is_over
      end

      # @return [false]
      def drop(wait)
        confirms.drop(wait)
        false
      end

      def result_of(wait)
        result = confirms.await(wait)
        result == :unable ? cannot_confirm : result
      end

      # Who has subscribed before gets it, also if that was in the same callback.
      def hand(engine, channel, text, &)
        if (told = @told[engine])
          note_changes
          told.catch_up
        end
        engine.publish(channel, text, &) ? true : false
      rescue StandardError => e
        log.error "! #{engine.class}#publish: #{e.full_message(highlight: false)}"
        false
      end
    end
  end
end
