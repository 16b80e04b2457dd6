# frozen_string_literal: true

# Pub/sub through Redis, and ordinary commands beside it. What is called here only queues and wakes the
# engine's thread (redis/pump.rb), which is started in the process that first needs it: a stopped Redis
# delays no client. Needs the gem redis-client for addresses, credentials and TLS.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/queued/engine"
require "rondo/pubsub/queued/outage"
require "rondo/pubsub/queued/outbox"
require "rondo/pubsub/redis/subscriptions"

module Rondo
  module PubSub
    # An engine; two connections for each process that uses it.
    class Redis < Engine
      include Queued

      # A reply that says why there is none.
      class Error < Rondo::Error; end

      # A command that waits.
      # @api private
      class Entry < Outbox::Entry
        # @return [Integer] number of the last change of subscriptions before it
        attr_reader :change

        # @see Queued::Outbox::Entry
        def initialize(bytes, publish, block, change, **terms)
          super(bytes, publish, block, **terms)
          @change = change
        end
      end

      # After these a connection would answer other things than it was asked.
      # (MULTI: whatever others publish meanwhile would be part of it).
      # @api private
      CHANGES_CONNECTION = %w[SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE MONITOR HELLO
                              RESET QUIT SELECT SYNC PSYNC AUTH MULTI EXEC DISCARD WATCH UNWATCH].freeze
      # @api private
      THREAD = "rondo redis"
      # Bytes of a message that a subscription of the longest pattern adds to it.
      # @api private
      RETURN_EXTRA = 1100
      # @api private
      TOO_LONG = "a message is longer than reply_max, and was not sent"
      # In a cluster the connections go to the node of this hash tag.
      # @api private
      TAG = "rondo"

      # @return [String] where Redis is, without the password
      attr_reader :name

      # @param url [String] redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, unix:///PATH?db=DATABASE,
      #   redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/MASTER/DATABASE,
      #   redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT
      # @param ping [Numeric] seconds of silence after which a connection is pinged
      # @param timeout [Numeric] seconds to connect, and for each reply
      # @param queue [Integer] messages and commands kept while Redis is away
      # @param queue_bytes [Integer] and their bytes
      # @param reply_max [Integer] bytes of a reply, or of a message
      # @param log [Logger]
      # @param options [Hash] password_file, ca_file, cert, key, sentinel_username, sentinel_password,
      #   sentinel_password_file, sentinel_tls, as in an address (docs/PUSH.md); and further ones of
      #   RedisClient.config, such as `ssl_params: { ca_file: "ca.pem" }`
      # @raise [ConfigurationError] the gem is missing, the URL is not valid, or a file cannot be read
      def initialize(url, ping: 10, timeout: 5, queue: 10_000, queue_bytes: 64 << 20, reply_max: 16 << 20,
                     log: PubSub.log, **options)
        super()
        require "rondo/pubsub/redis/single"
        require "rondo/pubsub/redis/sentinels"
        require "rondo/pubsub/redis/cluster_nodes"
        @tag ||= TAG
        @address = Address.new(url, options)
        @name = "Redis at #{@address.name}"
        @terms = { ping: ping, timeout: timeout, reply_max: reply_max }
        @limits = [queue, queue_bytes]
        @log = log
        @mutex = Mutex.new
        @changed = ConditionVariable.new
        begin_anew
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def subscribe(channel, is_pattern)
        queue { @subscriptions.add(channel.to_s.b, is_pattern ? true : false) }
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def unsubscribe(channel, is_pattern)
        queue { @subscriptions.remove(channel.to_s.b, is_pattern ? true : false) }
      end

      # @param channel [String]
      # @param message [String]
      # @yieldparam result [Boolean] whether Redis has it
      # @return [Boolean] false when the queue is full, the engine closed, the message too long to come back, or one of
      #   presence while Redis is away or answers nothing
      def publish(channel, message, &block)
        is_passing = passing?(channel)
        return false if is_passing && away?

        push(["PUBLISH", channel, message], true, block && told_by(block), is_passing: is_passing)
      end

      # @return [Boolean] see {Engine#confirms?}
      def confirms?
        true
      end

      # An ordinary command, in order with what is published. Its reply is a String, Integer, Array or nil as
      # Redis says it (RESP 2), or an {Error}: Redis refused, or went away after the command had been sent.
      # @param words [Array<#to_s>] "SET", "key", 1
      # @yieldparam reply [String, Integer, Array, nil, Error] on a thread of its own
      # @return [Boolean] as of {#publish}; the block is not called when it is false
      # @raise [ArgumentError] the command would change the connection
      def cmd(*words, &block)
        verb = words.first.to_s.upcase
        raise ArgumentError, "the command is missing" if verb.empty?
        if changes_connection?(verb, words[1].to_s)
          raise ArgumentError, "#{verb} would change the connection that all commands share, so it is " \
                               "refused"
        end

        push(words, false, block)
      end

      # @return [Boolean] whether messages have ids of the engine
      # @api private
      def keeps?
        false
      end

      private

      # In a process that was forked the parent's connections, threads and messages are not ours.
      def begin_anew
        @pump&.close
        @pid = nil
        @closed = false
        @outbox = Outbox.new(*@limits, on_lost: method(:lost))
        @subscriptions = Subscriptions.new(on_refusal: method(:refused)) { |*message| deliver(*message) }
        @place = Place.of(@address, @tag)
        @outage = Outage.new(@name, @log, @place.longest_pause) { @mutex.synchronize { @changed.broadcast } }
        begin_replies
      end

      def changes_connection?(verb, word)
        CHANGES_CONNECTION.include?(verb) || (verb == "CLIENT" && word.casecmp?("reply"))
      end

      def begin_pump
        new_pump { |entry, reply| answered(entry, reply) }
      end

      def new_pump(&)
        Pump.new(@place, @outbox, @subscriptions, @mutex, outage: @outage, **@terms, &)
      end

      def push(words, publish, block = nil, is_passing: false)
        bytes = Link.encode(words)
        return too_long if publish && bytes.bytesize + RETURN_EXTRA > @terms[:reply_max]

        queue do
          start_replies if block
          next true if @outbox.push(Entry.new(bytes, publish, block, @subscriptions.asked, passing: is_passing))

          @outage.full(@outbox.limits) unless is_passing
          false
        end
      end

      # What was published. Text is what looks like it, as at subscribers.
      def said(entry)
        channel = message = nil # a command looks like the reply that is an Array
        Replies.new(entry.bytes.bytesize).feed(entry.bytes) { |words| _, channel, message = words }
        [channel.force_encoding(Encoding::UTF_8), Queued.text(message), 0]
      end

      # The number in an answer is that of subscribers, or an id.
      def told_by(block, keeps: false)
        lambda do |reply|
          block.call(!reply.is_a?(Error) && (keeps && reply.to_i.positive? ? reply.to_i : true))
        end
      end

      # ---- on the thread of the pump ----

      def deliver(channel, message)
        PROCESS.publish(channel, message)
      rescue StandardError => e
        @outage.refused("a message from Redis could not be delivered: #{e.message} (#{e.class})")
      end

      def answered(entry, reply)
        if reply.is_a?(Replies::Refusal)
          message = @place.explain(reply.message)
          @outage.refused(message) if entry.publish
          reply = Error.new(message)
        end
        resolve(entry, reply)
        @mutex.synchronize { drained if @outbox.empty? }
      end

      def lost(entry)
        resolve(entry, Error.new("#{@name} lost the connection before it replied"))
      end

      def refused(channel, reason)
        @outage.refused("cannot subscribe to #{channel.inspect}: #{reason}")
      end
    end
  end
end
