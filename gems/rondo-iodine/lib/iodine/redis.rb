# frozen_string_literal: true

# The engine for Redis: Rondo's (docs/PUSH.md, Redis) with iodine's arguments and replies.
# SPDX-License-Identifier: MIT

module Iodine
  module PubSub
    # Messages go through a Redis server, and so reach other machines. It needs the gem `redis-client`.
    class Redis < Engine
      LONGEST = 4096
      private_constant :LONGEST

      # @return [String] where Redis is
      # @api private
      attr_reader :url

      # @param url [String] redis://USER:PASSWORD@HOST:PORT/
      # @param options [Hash] ping [Integer] seconds, from 0 to 255
      # @raise [ArgumentError, TypeError]
      def initialize(url = (missing = true), options = nil)
        super()
        raise ArgumentError, "Iodine::PubSub::Redis.new(address, opt={}) requires at least 1 argument." if missing

        Base.check(url, String)
        raise ArgumentError, "Redis URL too long." if url.bytesize > LONGEST

        @url = url.include?("://") ? url : "redis://#{url}"
        @ping = ping_of(options)
        outlet # a wrong address is an error now
      end

      # Sends a command; before the server begins it waits for that, and goes out once for all processes. The block gets
      # the reply: an Integer, a String, an Array, true for OK, a String with "-" before it for an error, or nil if it
      # was not sent.
      # @param words [Array<String, Symbol, Numeric, true, false, nil>]
      # @return [self]
      # @raise [ArgumentError]
      def cmd(*words, &block)
        if words.empty?
          raise ArgumentError, "Iodine::PubSub::Redis#cmd(command, ...) is missing the required command argument."
        end

        words = words.map { |word| word_of(word) }
        Base.begun? ? send_words(words, block) : Rondo::Root.run { send_words(words, block) }
        self
      end

      # @param to [String]
      # @param message [String]
      # @return [self]
      def publish(to, message)
        outlet.publish(to, message)
        self
      end

      # Once for all processes, when the server begins.
      # @api private
      def publish_later(name, message)
        return super unless PubSub.default.equal?(self)

        Rondo::Root.run { Rondo.publish(name, message) }
        true
      end

      # @api private
      def outlet
        @outlet ||= Rondo::PubSub::Redis.new(@url, **(@ping.zero? ? {} : { ping: @ping }))
      rescue Rondo::ConfigurationError => e
        raise ArgumentError, "Error initializing the Redis engine - malformed URL? (#{e.message})"
      end

      # The server has it as its own engine, once for all workers, if it was the default when the server began.
      # @api private
      # @return [void]
      def give_to_server
        @given = true
        Rondo::PubSub.detach(outlet)
      end

      # @api private
      # @return [Boolean]
      def given_to_server?
        @given
      end

      private

      def send_words(words, block)
        sent = outlet.cmd(*words) { |reply| Base.guard { block&.call(answer(reply)) } }
        Base.guard { block.call(nil) } if block && !sent
      end

      def ping_of(options)
        return 0 if options.nil?

        Base.check(options, Hash)
        ping = options[:ping]
        return 0 if ping.nil?

        Base.check(ping, Integer)
        return ping if ping.between?(0, 255)

        raise ArgumentError, ":ping must be a non-negative integer under 255 seconds."
      end

      def word_of(word)
        case word
        when String, Symbol, Integer, Float, true, false, nil then word.to_s
        else
          raise ArgumentError, "only String, Number (with limits), Symbol, true, false and nil arguments can be used."
        end
      end

      def answer(reply)
        case reply
        when "OK" then true
        when Rondo::Error then "-#{reply.message}"
        when Array then reply.map { |part| answer(part) }
        else reply
        end
      end
    end
  end
end
