# frozen_string_literal: true

# What a process knows of one room: its own ids, those of each other process, and ids that are nowhere any more but
# have not left yet. Under the lock of node.rb.
# SPDX-License-Identifier: MIT

module Rondo
  module Presence
    # The ids of one other process in a room.
    # @!attribute version [Integer]
    # @!attribute ids [Hash{String => String, nil}] with their info as JSON
    # @!attribute named_in [Integer] cycle in which that process named the room last
    # @!attribute partial [Boolean] some were not taken, because of a limit
    # @api private
    Record = Struct.new(:version, :ids, :named_in, :partial)

    # One room.
    # @api private
    class Room
      # Bytes of an entry beside id and info: two Strings and a place in a Hash.
      ENTRY = 136
      # Bytes of an entry.
      def self.cost(id, info)
        ENTRY + id.bytesize + (info ? info.bytesize : 0)
      end

      # @return [String]
      attr_reader :name
      # @return [Hash{String => String, nil}] ids of this process with their info
      attr_reader :local
      # @return [Hash{String => Record}] by process
      attr_reader :records
      # @return [Integer] of the last message about it that this process has sent; 0: nobody is here
      attr_accessor :version
      # @return [Float] until when it is followed, although this process neither has ids nor blocks
      attr_accessor :until
      # @return [Hash{String => String, nil}, nil] ids of which blocks know, with their info for a leave; nil: there is
      #   no block
      attr_reader :told

      def initialize(name)
        @name = name
        @local = {}
        @tabs = {}
        @records = {}
        @lingering = {}
        @version = 0
        @until = 0
      end

      # ---- of this process ----

      # @return [Boolean] whether others must hear of it
      def enter(id, info)
        if @local.key?(id)
          @tabs[id] = tabs(id) + 1
          return false if @local[id] == info
        end
        @local[id] = info
        true
      end

      # @return [Boolean] whether it was the last tab
      def leave(id)
        left = tabs(id) - 1
        if left.positive?
          left == 1 ? @tabs.delete(id) : @tabs[id] = left
          return false
        end
        @local.delete(id)
        true
      end

      # @return [Integer] connections of this process with the id
      def tabs(id)
        return 0 unless @local.key?(id)

        @tabs.fetch(id, 1)
      end

      # ---- of all ----

      # @return [Boolean] whether a connection has it
      def connected?(id)
        @local.key?(id) || @records.any? { |_, record| record.ids.key?(id) }
      end

      # @return [Boolean] whether it has not left
      def present?(id)
        @lingering.key?(id) || connected?(id)
      end

      # The same at all processes: the info of the process with the smallest name.
      # @return [Hash{String => String, nil}] ids with info
      def entries(own_name)
        all = {}
        @lingering.each { |id, (_, info)| all[id] = info }
        parts = @records.map { |name, record| [name, record.ids] }
        parts << [own_name, @local] unless @local.empty?
        parts.sort_by(&:first).reverse_each { |_, ids| all.update(ids) }
        all
      end

      # A connection has it now.
      # @return [void]
      def gain(id)
        @lingering.delete(id)
        @silent&.delete(id)
        note(id)
      end

      # A connection has lost it.
      # @param deadline [Float] when it leaves
      # @return [void]
      def lose(id, info, deadline, now)
        return if connected?(id)

        deadline > now ? @lingering[id] = [deadline, info].freeze : @lingering.delete(id)
        @told[id] = info if @told&.key?(id) # the last one
        note(id)
      end

      # These were lost with a process that was silent.
      # @param ids [Array<String>]
      # @return [void]
      def note_silent(ids)
        ids.each { |id| @silent[id] = true unless connected?(id) } if @silent
      end

      # @return [Boolean] whether ids are about to leave
      def lingering?
        !@lingering.empty?
      end

      # Those whose time is over leave.
      # @return [void]
      def expire(now)
        @lingering.each do |id, (deadline, _)|
          break if deadline > now

          @lingering.delete(id)
          note(id)
        end
      end

      # Nobody leaves before that time.
      # @return [void]
      def postpone(time)
        @lingering.each { |id, (deadline, info)| @lingering[id] = [time, info].freeze if deadline < time }
      end

      # @return [Float, nil] when the next id leaves
      def next_leave
        @lingering.first&.last&.first
      end

      # @return [Boolean] whether nothing is known of it
      def empty?
        @local.empty? && @records.empty? && @lingering.empty?
      end

      # @return [Integer] ids of other processes, once for each
      def remote_count
        @records.sum { |_, record| record.ids.size }
      end

      # ---- for blocks ----

      # From now on changes are told: first those who are there.
      # @return [void]
      def listen(own_name)
        return if @told

        @told = {}
        @silent = {}
        @changed = {}
        entries(own_name).each_key { |id| @changed[id] = true }
      end

      # @return [Boolean] whether blocks are to be called
      def changed?
        !!@changed&.any?
      end

      # @param most [Integer]
      # @return [Array<Array(Symbol, String, String, Boolean)>] :join or :leave, id, info, whether it left with a silent
      #   process; alternating for each id
      def take_changes(own_name, most)
        changes = []
        while changes.size < most && (id, = @changed.shift)
          was, is = @told.key?(id), present?(id)
          silent = !is && @silent.delete(id)
          next if was == is

          info = is ? @told[id] = info_of(id, own_name) : @told.delete(id)
          changes << [is ? :join : :leave, id, info, silent]
        end
        changes
      end

      private

      def note(id)
        @changed[id] = true if @changed
      end

      def info_of(id, own_name)
        names = @records.select { |_, record| record.ids.key?(id) }.keys
        names << own_name if @local.key?(id)
        least = names.min or return @lingering[id]&.last
        least == own_name ? @local[id] : @records[least].ids[id]
      end
    end
  end
end
