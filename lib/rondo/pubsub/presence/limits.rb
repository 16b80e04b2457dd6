# frozen_string_literal: true

# What Presence allows, and the check of what applications pass: rooms, ids, info. Any thread.
# SPDX-License-Identifier: MIT

require "json"

module Rondo
  module Presence
    # Bounds of one process.
    # @!attribute grace [Numeric] seconds until an id that is nowhere has left
    # @!attribute silence [Numeric] seconds after which a process that is not heard counts as dead
    # @!attribute rooms_per_client [Integer]
    # @!attribute rooms [Integer] that this process follows
    # @!attribute replica_bytes [Integer] of all that is known here, by the estimate of {Room.cost}
    # @!attribute info_bytes [Integer] of one info as JSON
    # @api private
    Limits = Struct.new(:grace, :silence, :rooms_per_client, :rooms, :replica_bytes, :info_bytes, keyword_init: true) do
      # @return [Limits]
      def self.default
        new(grace: 2, silence: 4, rooms_per_client: 100, rooms: 10_000, replica_bytes: 64 << 20, info_bytes: 4096)
      end

      # @return [Limits] with other values
      # @raise [ArgumentError] one line
      def change(**values)
        values.each do |name, value|
          range = RANGES.fetch(name) { raise ArgumentError, "Rondo::Presence has no limit #{name}" }
          whole = range.begin.is_a?(Integer)
          next if (whole ? value.is_a?(Integer) : value.is_a?(Numeric) && value.real?) && range.cover?(value)

          kind = whole ? "an Integer" : "a number"
          raise ArgumentError, "#{name} must be #{kind} from #{range.begin} to #{range.end}, not " \
                               "#{value.inspect[0, 80]}"
        end
        dup.tap { |limits| values.each { |name, value| limits[name] = value } }.freeze
      end
    end

    # What limits may be. A process is heard once a second.
    # @api private
    RANGES = { grace: 0.0..3600.0, silence: 2.5..300.0, rooms_per_client: 1..100_000, rooms: 1..1_000_000,
               replica_bytes: 65_536..(16 << 30), info_bytes: 0..16_384 }.freeze
    # The most bytes of the name of a room, and of an id.
    # @api private
    NAME_BYTES = 256

    # The check of arguments.
    # @api private
    module Arguments
      module_function

      # @param value [String, Symbol]
      # @return [String] frozen
      # @raise [ArgumentError, TypeError]
      def room(value)
        value = value.to_s if value.is_a?(Symbol)
        name("a room", value)
      end

      # @param value [String]
      # @return [String] frozen
      # @raise [ArgumentError, TypeError]
      def id(value)
        name("an id", value)
      end

      # @param value [Hash, Array, String, nil]
      # @param most [Integer] bytes
      # @return [String, nil] frozen JSON
      # @raise [ArgumentError, TypeError]
      def info(value, most)
        return if value.nil?
        unless value.is_a?(Hash) || value.is_a?(Array) || value.is_a?(String)
          raise TypeError, "info must be a Hash, an Array, a String or nil, not #{value.class}"
        end
        # Before a copy of it is made.
        raise ArgumentError, too_long(value.bytesize, most) if value.is_a?(String) && value.bytesize > most

        text = JSON.generate(value)
        raise ArgumentError, too_long(text.bytesize, most) if text.bytesize > most

        text.freeze
      rescue JSON::JSONError, EncodingError => e
        raise ArgumentError, "info cannot be JSON: #{e.message[0, 200]}"
      end

      def name(what, value)
        raise TypeError, "#{what} must be a String, not #{value.class}" unless value.is_a?(String)
        unless value.bytesize.between?(1, NAME_BYTES)
          raise ArgumentError, "#{what} must have 1 to #{NAME_BYTES} bytes, not #{value.bytesize}"
        end

        text = String.new(value, encoding: Encoding::UTF_8)
        raise ArgumentError, "#{what} must be valid UTF-8" unless text.valid_encoding?

        text.freeze
      end
      private_class_method :name

      def too_long(bytes, most)
        "info has #{bytes} bytes as JSON, more than #{most}"
      end
      private_class_method :too_long
    end
  end
end
