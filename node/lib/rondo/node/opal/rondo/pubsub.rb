# backtick_javascript: true
# frozen_string_literal: true

# Channels, for applications. The work is done in JavaScript (engine/bus.js and its neighbours); here arguments are
# checked, as the server on MRI checks them.
# SPDX-License-Identifier: MIT

require "json"

module Rondo
  # Publishing and subscribing.
  module PubSub
    class << self
      # Keeps the last messages of a channel, or of those that a pattern matches; `size: 0` ends that.
      # @param size [Integer] messages
      # @param ttl [Numeric, nil] seconds
      def history(channel, is_pattern = false, size:, match: nil, ttl: nil)
        raise ArgumentError, "size must not be negative" if size.negative?

        `Opal.rondo.bus.remember(#{name(channel)}, #{pattern?(is_pattern, match)}, size, ttl === nil ? 0 : ttl * 1000)`
        nil
      end

      # @param scope [Symbol] :cluster, :engine, :process or :siblings
      # @return [Boolean]
      def send_to(channel, message, scope)
        `Opal.rondo.bus.publish(#{name(channel)}, #{published(message)}, scope)`
      end

      # @param endpoint [Object] a connection in JavaScript
      # @return [true, nil]
      def subscribe(endpoint, channel, is_pattern, kind, since, block)
        raise ArgumentError, "as must be :text, :binary or nil" unless [nil, :text, :binary].include?(kind)

        place = since_of(since)
        block ||= `null`
        kind ||= `null`
        `Opal.rondo.bus.subscribe(endpoint, #{name(channel)}, is_pattern, kind, place, block) || nil`
      end

      # @return [Boolean]
      def unsubscribe(endpoint, channel, is_pattern)
        `Opal.rondo.bus.unsubscribe(endpoint, #{name(channel)}, is_pattern)`
      end

      # @return [true]
      def subscribe_block(channel, is_pattern, since, block)
        place = since_of(since)
        `Opal.rondo.bus.subscribeBlock(#{name(channel)}, is_pattern, place, block)`
      end

      # @return [Boolean]
      def unsubscribe_block(channel, is_pattern)
        `Opal.rondo.bus.unsubscribeBlock(#{name(channel)}, is_pattern)`
      end

      # @return [Boolean]
      def pattern?(is_pattern, match)
        raise ArgumentError, "match must be :redis or nil" unless [nil, :redis].include?(match)

        match == :redis || (is_pattern ? true : false)
      end

      # @return [Object] a string of JavaScript for text, a Buffer for anything else
      def wire(data)
        string = string_of(data)
        valid(`Opal.rondo.text.wire(string)`)
      end

      # @return [String] the lines before the data of an event
      def fields(event, id, pause)
        lines = [["id", id], ["event", event]].map { |name, value| value.nil? ? "" : "#{name}: #{line(name, value)}\n" }
        return lines.join if pause.nil?
        unless pause.is_a?(Integer) && pause >= 0
          raise ArgumentError, "retry must be a number of milliseconds, not #{pause.inspect}"
        end

        lines.join + "retry: #{pause}\n"
      end

      private

      def string_of(message)
        message = message.to_json if message.is_a?(Hash) || message.is_a?(Array)
        raise TypeError, "no implicit conversion of #{message.class} into String" unless message.is_a?(String)

        message
      end

      def valid(wired)
        raise ArgumentError, "the message is not valid UTF-8" if `wired === null`

        wired
      end

      def published(message)
        string = string_of(message)
        wired = valid(`Opal.rondo.text.published(string)`)
        size = `typeof wired === "string" ? Buffer.byteLength(wired) : wired.length`
        most = `Opal.rondo.limits.maxPublishBytes`
        raise ArgumentError, "the message has #{size} bytes, more than max_publish_bytes (#{most})" if size > most

        wired
      end

      def name(channel)
        raise TypeError, "a channel is a String or a Symbol, not #{channel.class}" unless channel.is_a?(String)

        size = channel.bytesize
        raise ArgumentError, "a channel has 1 to 1024 bytes, not #{size}" unless size.between?(1, 1024)

        `channel.toString()`
      end

      def since_of(since)
        case since
        when nil then `null`
        when Time then `{ time: since.getTime() }`
        when Integer, String
          raise ArgumentError, "since must not be negative" if since.is_a?(Integer) && since.negative?

          `{ id: Number(since) }`
        else raise TypeError, "since must be an Integer, a String or a Time, not #{since.class}"
        end
      end

      def line(name, value)
        text = value.to_s
        return text unless text.match?(/[\r\n\0]/) || !text.valid_encoding?

        raise ArgumentError, "the #{name} of an event must be one line of UTF-8 without NUL"
      end
    end
  end
end
