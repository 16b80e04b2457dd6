# frozen_string_literal: true

# Frames between the hub of a cluster and an engine, as ext/rondo/pubsub/relay.h has them: 16 bytes of
# type, flags, lengths and id, then channel and payload. Only what an engine gets and sends; a length is
# checked before anything is kept. Used by engine_link.rb.
# SPDX-License-Identifier: MIT

module Rondo
  module PubSub
    # Takes frames out of a stream; makes them.
    # @api private
    class RelayFrames
      # The stream has no meaning any more.
      class Invalid < StandardError; end

      # @!attribute type [Symbol] :subscribe, :unsubscribe or :publish
      # @!attribute pattern [Boolean] of the first two
      # @!attribute channel [String]
      # @!attribute message [String] of :publish; UTF-8 for text, else BINARY
      Frame = Struct.new(:type, :channel, :message, :pattern, keyword_init: true)

      TYPES = { 1 => :subscribe, 2 => :unsubscribe, 3 => :publish }.freeze
      SUBSCRIBE = 1
      PUBLISH = 3
      TEXT = 1
      PATTERN = 2
      # Those a frame may have: with ECHO (4) and ENGINE (8) a worker says how far a message goes.
      FLAGS = { subscribe: PATTERN, unsubscribe: PATTERN, publish: TEXT | 4 | 8 }.freeze
      HEAD = "CCnNQ>"
      HEAD_BYTES = 16
      CHANNEL_MAX = 1024
      PAYLOAD_MAX = 1 << 26

      # @param channel [String]
      # @param message [String]
      # @return [String, nil] the frame; nil when it would be above the limits
      def self.publish(channel, message)
        return unless channel.bytesize.between?(1, CHANNEL_MAX) && message.bytesize <= PAYLOAD_MAX

        head = [PUBLISH, text?(message) ? TEXT : 0, channel.bytesize, message.bytesize, 0].pack(HEAD)
        head << channel.b << message.b
      end

      # @param channel [String]
      # @param pattern [Boolean]
      # @return [String] the frame
      def self.subscribe(channel, pattern)
        [SUBSCRIBE, pattern ? PATTERN : 0, channel.bytesize, 0, 0].pack(HEAD) << channel.b
      end

      # @return [Boolean] whether it goes as text to clients
      def self.text?(message)
        [Encoding::UTF_8, Encoding::US_ASCII].include?(message.encoding) && message.valid_encoding?
      end

      def initialize
        @kept = String.new(encoding: Encoding::BINARY)
      end

      # @param bytes [String] any cut of the stream
      # @yieldparam frame [Frame]
      # @return [void]
      # @raise [Invalid]
      def feed(bytes)
        @kept << bytes
        at = 0
        while @kept.bytesize - at >= HEAD_BYTES
          type, flags, channel_bytes, payload_bytes, = head_at(at)
          size = HEAD_BYTES + channel_bytes + payload_bytes
          break if @kept.bytesize - at < size

          yield frame(type, flags, @kept.byteslice(at + HEAD_BYTES, channel_bytes),
                      @kept.byteslice(at + HEAD_BYTES + channel_bytes, payload_bytes))
          at += size
        end
        @kept.slice!(0, at)
      end

      private

      def head_at(at)
        number, flags, channel_bytes, payload_bytes, id = @kept.byteslice(at, HEAD_BYTES).unpack(HEAD)
        type = TYPES[number] or raise Invalid, "a frame of type #{number}"
        raise Invalid, "a frame with flags #{flags}" if flags.anybits?(~FLAGS[type])
        raise Invalid, "a channel of #{channel_bytes} bytes" unless channel_bytes.between?(1, CHANNEL_MAX)

        limit = type == :publish ? PAYLOAD_MAX : 0
        raise Invalid, "a payload of #{payload_bytes} bytes" if payload_bytes > limit

        [type, flags, channel_bytes, payload_bytes, id]
      end

      def frame(type, flags, channel, payload)
        channel.force_encoding(Encoding::UTF_8)
        return Frame.new(type: type, channel: channel, pattern: flags.anybits?(PATTERN)) unless type == :publish

        payload.force_encoding(Encoding::UTF_8) if flags.anybits?(TEXT)
        Frame.new(type: type, channel: channel, message: payload)
      end
    end
  end
end
