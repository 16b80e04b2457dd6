# frozen_string_literal: true

# Pub/sub through Redis, and ordinary commands beside it. What is called here only queues and wakes the
# engine's thread (redis/pump.rb), which is started in the process that first needs it: a stopped Redis
# delays no client. Needs the gem redis-client for addresses, credentials and TLS.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/redis/outage"
require "rondo/pubsub/redis/outbox"
require "rondo/pubsub/redis/subscriptions"

module Rondo
  module PubSub
    # An engine; two connections for each process that uses it.
    class Redis < Engine
      # A reply that says why there is none.
      class Error < Rondo::Error; end

      # After these a connection would answer other things than it was asked.
      # (MULTI: whatever others publish meanwhile would be part of it).
      # @api private
      CHANGES_CONNECTION = %w[SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE MONITOR HELLO
                              RESET QUIT SELECT SYNC PSYNC AUTH MULTI EXEC DISCARD WATCH UNWATCH].freeze
      # Seconds that what is queued has at the end of the process.
      # @api private
      LAST_CHANCE = 2
      # Seconds for the thread to end by itself: it may be waiting for a connection.
      # @api private
      FAREWELL = 0.1
      # Bytes of a message that a subscription of the longest pattern adds to it.
      # @api private
      RETURN_EXTRA = 1100
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
      # @return [Boolean] false when the queue is full, the engine closed, or the message too long to come back
      def publish(channel, message, &block)
        push(["PUBLISH", channel, message], true, block && told_by(block))
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

      # Begins to connect, without waiting for it.
      # @return [void]
      def start
        queue { nil }
      end

      # @param seconds [Numeric]
      # @return [void]
      # @raise [Error] why there is no connection, in one line
      def wait_until_connected(seconds)
        start
        wait_for(seconds) { @outage.here? } or
          raise Error, "#{@name} is not available: #{@outage.reason || "no answer within #{seconds} s"}"
      end

      # Waits for the answers to all that is queued.
      # @param seconds [Numeric] at most
      # @return [Integer] messages and commands that have not been answered by then; 0 in a child process
      def flush(seconds)
        return 0 unless @pid == Process.pid

        wait_for(seconds) { @outbox.empty? }
        @mutex.synchronize { @outbox.count }
      end

      # Nothing can be published any more. What is lost by that is a line in the log.
      # @param seconds [Numeric] that what is queued has to leave
      # @return [void]
      def close(seconds = LAST_CHANCE)
        return unless @pid == Process.pid

        @mutex.synchronize { @closed = true }
        lost = flush(seconds)
        @log.error "! #{@name}: #{lost} messages were not sent" if lost.positive?
        @pump.end
        @thread.join(FAREWELL) || @thread.kill
        @replies << nil
      end

      # @return [Boolean] whether messages have ids of the engine
      # @api private
      def keeps?
        false
      end

      # @return [Boolean] whether Redis is there, as far as is known
      def connected?
        @pid == Process.pid && @outage.here?
      end

      # @return [Integer] messages and commands that have no answer yet
      def queued
        @mutex.synchronize { @outbox.count }
      end

      # @return [String] without the password
      def inspect
        "#<#{self.class} #{@name}>"
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
        @replies = Thread::Queue.new
        @reader = nil
      end

      def changes_connection?(verb, word)
        CHANGES_CONNECTION.include?(verb) || (verb == "CLIENT" && word.casecmp?("reply"))
      end

      # Runs the block under the mutex and wakes the thread. A Timeout of the caller waits for that: half a
      # change would stay for ever.
      def queue(&block)
        Thread.handle_interrupt(Object => :never) { @mutex.synchronize { change(&block) } }
      end

      def change
        return false if @closed && @pid == Process.pid

        start_thread unless @pid == Process.pid
        yield.tap { @pump.wake }
      end

      def start_thread
        begin_anew if @pid
        @pid = Process.pid
        @pump = new_pump { |entry, reply| answered(entry, reply) }
        @thread = named_thread("rondo redis") { @pump.run }
        pid = @pid
        at_exit { close if pid == Process.pid && !@closed }
      end

      def new_pump(&)
        Pump.new(@place, @outbox, @subscriptions, @mutex, outage: @outage, **@terms, &)
      end

      def named_thread(name, &block)
        Thread.new { Thread.handle_interrupt(Object => :immediate, &block) }.tap do |thread|
          thread.name = name
          thread.thread_variable_set(:fork_safe, true)
        end
      end

      def push(words, publish, block = nil)
        bytes = Link.encode(words)
        return false if publish && bytes.bytesize + RETURN_EXTRA > @terms[:reply_max]

        queue do
          start_replies if block
          next true if @outbox.push(Outbox::Entry.new(bytes, @subscriptions.asked, publish, block))

          @outage.full(@outbox.limits)
          false
        end
      end

      # The number in an answer is that of subscribers, or an id.
      def told_by(block, keeps: false)
        lambda do |reply|
          block.call(!reply.is_a?(Error) && (keeps && reply.to_i.positive? ? reply.to_i : true))
        end
      end

      def wait_for(seconds)
        limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
        @mutex.synchronize do
          until (found = yield)
            left = limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)
            return false unless left.positive?

            @changed.wait(@mutex, left)
          end
          found
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

      def drained
        @outage.drained
        @changed.broadcast
      end

      def lost(entry)
        resolve(entry, Error.new("#{@name} lost the connection before it replied"))
      end

      def refused(channel, reason)
        @outage.refused("cannot subscribe to #{channel.inspect}: #{reason}")
      end

      # ---- replies for the application ----

      def resolve(entry, reply)
        @replies << [entry.block, reply] if entry.block
      end

      # What the application does with a reply may take its time.
      def start_replies
        return if @reader

        @reader = named_thread("rondo redis replies") do
          while (block, reply = @replies.pop)
            hand_over(block, reply)
          end
        end
      end

      def hand_over(block, reply)
        block.call(reply)
      rescue StandardError => e
        @log.error "! #{@name}: the block of a command: #{e.full_message(highlight: false)}"
      end
    end
  end
end
