# backtick_javascript: true
# frozen_string_literal: true

# Pub/sub through Redis, and ordinary commands beside it, with the interface of the engine on MRI. The work is done in
# JavaScript (engine/redis/). What waits on MRI returns a Promise here.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engines"

module Rondo
  module PubSub
    # An engine; two connections for each process that uses it.
    class Redis < Engine
      # A reply that says why there is none.
      class Error < Rondo::Error; end

      # After these a connection would answer other things than it was asked.
      CHANGES_CONNECTION = %w[SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE SSUBSCRIBE SUNSUBSCRIBE MONITOR HELLO
                              RESET QUIT SELECT SYNC PSYNC AUTH MULTI EXEC DISCARD WATCH UNWATCH].freeze
      # Files of TLS that can be named.
      FILES = { ca_file: "ca", cert: "cert", key: "key" }.freeze

      # @param url [String] redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, unix:///PATH?db=DATABASE
      # @param ping [Numeric] seconds of silence after which a connection is pinged
      # @param timeout [Numeric] seconds to connect, and for each reply
      # @param queue [Integer] messages and commands kept while Redis is away
      # @param queue_bytes [Integer] and their bytes
      # @param reply_max [Integer] bytes of a reply, or of a message
      # @param log [Object] is not used: the log is that of the server
      # @param ssl_params [Hash] paths of files: ca_file, cert, key
      # @raise [ConfigurationError] the URL is not valid
      def initialize(url, ping: 10, timeout: 5, queue: 10_000, queue_bytes: 67_108_864, reply_max: 16_777_216,
                     log: nil, ssl_params: {}, username: nil, password: nil, db: nil)
        super()
        options = `{ ping: ping * 1000, timeout: timeout * 1000, queue, queueBytes: queue_bytes, replyMax: reply_max,
                     files: #{files(ssl_params)}, credentials: {} }`
        { username: username, password: password, database: db }.compact.each do |pair|
          `options.credentials[pair[0]] = pair[1]`
        end
        @engine = `Opal.rondo.redis.make(Opal.rondo.bus, String(url), options)`
      end

      # @return [String] where Redis is, without the password
      def name
        `self.engine.name`
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def subscribe(channel, is_pattern)
        `self.engine.subscribe(channel.toString(), is_pattern)`
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def unsubscribe(channel, is_pattern)
        `self.engine.unsubscribe(channel.toString(), is_pattern)`
      end

      # @param channel [String]
      # @param message [String]
      # @return [Boolean] false when the queue is full, the engine closed, or the message too long to come back
      def publish(channel, message)
        `Opal.rondo.redis.publish(self.engine, channel.toString(), message)`
      end

      # An ordinary command, in order with what is published.
      # @param words [Array<#to_s>] "SET", "key", 1
      # @yieldparam reply [String, Integer, Array, nil, Error]
      # @return [Boolean] as of `publish`; the block is not called when it is false
      # @raise [ArgumentError] the command would change the connection
      def cmd(*words, &block)
        verb = words.first.to_s.upcase
        raise ArgumentError, "the command is missing" if verb.empty?
        if CHANGES_CONNECTION.include?(verb) || (verb == "CLIENT" && words[1].to_s.casecmp?("reply"))
          raise ArgumentError, "#{verb} would change the connection that all commands share, so it is refused"
        end

        `Opal.rondo.redis.command(self.engine, #{words.map(&:to_s)}, block)`
      end

      # Begins to connect.
      # @return [void]
      def start
        `self.engine.wake()`
        nil
      end

      # @param seconds [Numeric]
      # @return [Promise] that raises Error, with the reason why there is no connection
      def wait_until_connected(seconds)
        `Opal.rondo.redis.waitUntilConnected(self.engine, seconds)`
      end

      # @param seconds [Numeric] at most
      # @return [Promise<Integer>] messages and commands that have not been answered by then
      def flush(seconds)
        `Opal.rondo.redis.flush(self.engine, seconds)`
      end

      # Nothing can be published any more.
      # @param seconds [Numeric] that what is queued has to leave
      # @return [Promise]
      def close(seconds = 2)
        `Opal.rondo.redis.close(self.engine, seconds)`
      end

      # @return [Boolean] whether Redis is there, as far as is known
      def connected?
        `self.engine.outage.isHere`
      end

      # @return [Integer] messages and commands that have no answer yet
      def queued
        `self.engine.outbox.count`
      end

      # @return [String] without the password
      def inspect
        "#<#{self.class} #{name}>"
      end

      private

      # @return [Object] of JavaScript
      def files(params)
        unknown = params.keys - FILES.keys
        raise ArgumentError, "ssl_params can have ca_file, cert and key, not #{unknown.first}" if unknown.any?

        found = `{}`
        params.compact.each { |pair| `found[#{FILES[pair.first]}] = String(pair[1])` }
        found
      end
    end

    class << self
      # The engine of the command line is the default, unless the application has chosen one.
      # @param url [String]
      # @return [void]
      # @private
      def use_redis(url)
        return unless default.equal?(CLUSTER)

        self.default = Redis.new(url).tap(&:start)
      end
    end
  end
end
