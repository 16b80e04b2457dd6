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
      # @!attribute id [Integer]
      # @!attribute note [String, nil] of :publish: who waits for the engine's answer; see confirms.rb
      Frame = Struct.new(:type, :channel, :message, :pattern, :id, :note, keyword_init: true)

      TYPES = { 1 => :subscribe, 2 => :unsubscribe, 3 => :publish }.freeze
      # What an engine gets that keeps messages (ext/rondo/pubsub/hub.h).
      ALL_TYPES = { **TYPES, 4 => :replay, 7 => :keep }.freeze
      SUBSCRIBE = 1
      PUBLISH = 3
      REPLAY_BEGIN = 5
      REPLAY_END = 6
      SAVED_ENGINE = 15
      TEXT = 1
      PATTERN = 2
      # The payload begins with a note.
      CONFIRM = 128
      NOTE_BYTES = 16
      # Begins the note of a message that an engine had before a restart, with its number there; 0: it has none.
      RETURNED = "!"
      # Those a frame may have: with ECHO (4) and ENGINE (8) a worker says how far a message goes.
      FLAGS = { subscribe: PATTERN, unsubscribe: PATTERN, publish: TEXT | 4 | 8 | CONFIRM, replay: PATTERN,
                keep: PATTERN }.freeze
      # No message: some up to this id are lost.
      GAP = 64
      HEAD = "CCnNQ>"
      HEAD_BYTES = 16
      CHANNEL_MAX = 1024
      PAYLOAD_MAX = 1 << 26
      # Of the terms of a rule: size in 4 bytes, time to live (ms) in 8, and bytes in 8, if they are limited.
      TERMS = "NQ>Q>"
      TERMS_BYTES = 20

      # @param channel [String]
      # @param message [String]
      # @param id [Integer] of a message that an engine keeps
      # @return [String, nil] the frame; nil when it would be above the limits
      def self.publish(channel, message, id = 0)
        return unless channel.bytesize.between?(1, CHANNEL_MAX) && message.bytesize <= PAYLOAD_MAX

        head = [PUBLISH, text?(message) ? TEXT : 0, channel.bytesize, message.bytesize, id].pack(HEAD)
        head << channel.b << message.b
      end

      # @param number [Integer]
      # @return [String] a note
      def self.returned(number)
        format("#{RETURNED}%015x", number)
      end

      # @param note [String, nil]
      # @return [Integer, nil] the number; nil: it is no such note
      def self.number_of(note)
        note.delete_prefix(RETURNED).hex if note&.start_with?(RETURNED)
      end

      # @param channel [String]
      # @param id [Integer] up to which messages are lost
      # @return [String] the frame
      def self.gap(channel, id)
        [PUBLISH, TEXT | GAP, channel.bytesize, 0, id].pack(HEAD) << channel.b
      end

      # @param channel [String]
      # @param floor [Integer] none above it is missing
      # @param now_us [Integer] what time it is at the engine
      # @param known [Integer] the last id that the engine gave
      # @param number [Integer] of the request
      # @return [String] the frame before a copy
      def self.copy_begin(channel, floor, now_us, known, number)
        [REPLAY_BEGIN, 0, channel.bytesize, 24, floor].pack(HEAD) << channel.b << [now_us, known, number].pack("Q>3")
      end

      # @param channel [String]
      # @return [String] the frame behind a copy
      def self.copy_end(channel)
        [REPLAY_END, 0, channel.bytesize, 0, 0].pack(HEAD) << channel.b
      end

      # @param id [Integer] at which channels begin, before any message came
      # @return [String] the frame
      def self.begins_at(id)
        [SAVED_ENGINE, 0, 0, 0, id].pack(HEAD)
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

      # @param types [Hash{Integer => Symbol}] that may come
      def initialize(types = TYPES)
        @types = types
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
          type, flags, channel_bytes, payload_bytes, id = head_at(at)
          size = HEAD_BYTES + channel_bytes + payload_bytes
          break if @kept.bytesize - at < size

          yield frame(type, flags, id, @kept.byteslice(at + HEAD_BYTES, channel_bytes),
                      @kept.byteslice(at + HEAD_BYTES + channel_bytes, payload_bytes))
          at += size
        end
        @kept.slice!(0, at)
      end

      private

      def head_at(at)
        number, flags, channel_bytes, payload_bytes, id = @kept.byteslice(at, HEAD_BYTES).unpack(HEAD)
        type = @types[number] or raise Invalid, "a frame of type #{number}"
        raise Invalid, "a frame with flags #{flags}" if flags.anybits?(~FLAGS[type])
        raise Invalid, "a channel of #{channel_bytes} bytes" unless channel_bytes.between?(1, CHANNEL_MAX)

        limit = { publish: PAYLOAD_MAX, keep: TERMS_BYTES }.fetch(type, 0)
        least = type == :publish && flags.anybits?(CONFIRM) ? NOTE_BYTES : 0
        raise Invalid, "a payload of #{payload_bytes} bytes" unless payload_bytes.between?(least, limit)

        [type, flags, channel_bytes, payload_bytes, id]
      end

      def frame(type, flags, id, channel, payload)
        channel.force_encoding(Encoding::UTF_8)
        if type != :publish
          terms = payload if type == :keep
          return Frame.new(type: type, channel: channel, message: terms, pattern: flags.anybits?(PATTERN), id: id)
        end

        note = payload.slice!(0, NOTE_BYTES) if flags.anybits?(CONFIRM)
        payload.force_encoding(Encoding::UTF_8) if flags.anybits?(TEXT)
        Frame.new(type: type, channel: channel, message: payload, id: id, note: note)
      end
    end
  end
end
