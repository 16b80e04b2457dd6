# frozen_string_literal: true

# Another process with presence, as this one hears it. Under the lock of node.rb.
# SPDX-License-Identifier: MIT

module Rondo
  module Presence
    # A process, and what is still to be learnt of it.
    # @api private
    class Peer
      # Seconds for which a room that nobody is in is remembered: an old message may still come.
      TOMB = 30
      # Seconds between two questions for one room, at most.
      LONGEST_PAUSE = 4.0

      # Pages of a room that are not complete.
      # @!attribute parts [Hash{Integer => Array}, nil] nil: it gave way to others
      # @!attribute bytes [Integer]
      Assembly = Struct.new(:version, :pages, :parts, :at, :bytes) do
        # It takes no page before the room is asked for again.
        # @return [void]
        def give_way
          self.parts = nil
          self.bytes = 0
        end

        # @return [Boolean]
        def gave_way?
          parts.nil?
        end
      end

      # @return [String]
      attr_reader :name
      # @return [Float] when something of it came last
      attr_accessor :heard_at
      # @return [Integer] number of its last beat, and its cycle
      attr_accessor :beat, :cycle
      # @return [Hash{String => Array(Float, Integer)}] rooms that this process does not know for sure: when to ask,
      #   and how often it was asked
      attr_reader :unsure
      # @return [Hash{String => Assembly}] by room
      attr_reader :assemblies
      # @return [Hash{String => true}] rooms of which it has a record
      attr_reader :rooms

      def initialize(name, now)
        @name = name
        @heard_at = now
        @beat = -1
        @cycle = 0
        @unsure = {}
        @tombs = {}
        @assemblies = {}
        @rooms = {}
      end

      # Those that gave way: there are too many.
      # @return [void]
      def forget_assemblies
        @assemblies.delete_if { |_, assembly| assembly.gave_way? }
      end

      # @return [void]
      def doubt(room, due)
        @unsure[room] ||= [due, 0]
      end

      # It was asked.
      # @return [void]
      def asked(room, now, random)
        entry = @unsure[room] or return
        @assemblies.delete(room) if @assemblies[room]&.gave_way?
        pause = [0.5 * (2**[entry[1], 4].min), LONGEST_PAUSE].min
        @unsure[room] = [now + (pause * (0.75 + (random.rand * 0.5))), entry[1] + 1]
      end

      # @return [void]
      def bury(room, version, now)
        @tombs[room] = [version, now] if version > buried(room)
      end

      # @return [Integer] the version at which nobody was in it; 0: that is not known
      def buried(room)
        @tombs[room]&.first || 0
      end

      # @return [void]
      def forget_old(now)
        @tombs.delete_if { |_, (_, at)| now - at > TOMB }
        @assemblies.delete_if { |_, assembly| now - assembly.at > TOMB }
      end

      # @return [void]
      def forget(room)
        @unsure.delete(room)
        @assemblies.delete(room)
        @rooms.delete(room)
      end
    end
  end
end
