# frozen_string_literal: true

# What a replica does with the messages of other processes. Any of them may be lost, late, doubled or forged.
# SPDX-License-Identifier: MIT

module Rondo
  module Presence
    # The part of {Replica} that receives.
    # @api private
    module Receiving
      # Bytes of pages of all rooms that are not complete, by the estimate of {Room.cost}, above `replica_bytes`.
      ASSEMBLY_BYTES = 32 << 20
      # Assemblies above which those are forgotten that gave way.
      ASSEMBLIES = 65_536
      # Seconds until a message that seems to be missing is asked for: it may be late.
      PATIENCE = 0.2
      # Seconds for which no id leaves at a process that stood still: others beat, are asked, and answer. What came
      # meanwhile may also come after its own beat.
      CATCHING_UP = 1.5

      # @param room_name [String, nil] of the channel; nil: that of all
      # @param bytes [String]
      # @return [void]
      def receive(room_name, bytes, now)
        frame = Frames.read(bytes) or return @counts.invalid += 1
        return hear_myself(frame, now) if frame.name == @name
        return if @gone.key?(frame.name)
        return depart(frame.name, now) if frame.kind == "x" && room_name.nil?

        peer = peer_of(frame.name, now) or return
        peer.heard_at = now
        room_name ? receive_in(room_name, peer, frame, now) : receive_of_all(peer, frame, now)
      end

      private

      def hear_myself(frame, now)
        return unless frame.kind == "b" && frame.numbers[0] == @beat

        @echo_at = now
        return unless @deaf

        @deaf = false
        @peers.each_value { |peer| peer.heard_at = now }
        @lingering.each_key { |name| @rooms[name]&.postpone(now + CATCHING_UP) }
      end

      def depart(name, now)
        @gone[name] = now if @gone.size < self.class::MOST_PEERS
        peer = @peers[name] and drop(peer, now + @limits.grace, now)
      end

      # A process that is new here may know all that is asked of it, and wants to hear of this one.
      def peer_of(name, now)
        @peers[name] || begin
          if @peers.size >= self.class::MOST_PEERS
            @counts.refused += 1
            return
          end

          peer = @peers[name] = Peer.new(name, now)
          doubt_all(peer, now)
          soon = now + (@random.rand * 0.05)
          @beat_due = [@beat_due, soon].min
          peer
        end
      end

      def receive_in(name, peer, frame, now)
        room = @rooms[name] or return # it is not followed any more
        case frame.kind
        when "d" then receive_change(room, peer, frame, now)
        when "s" then receive_page(room, peer, frame, now)
        else @counts.invalid += 1
        end
      end

      def receive_of_all(peer, frame, now)
        case frame.kind
        when "b" then receive_beat(peer, frame, now)
        when "e" then receive_nobody(peer, frame, now)
        when "a" then receive_question(frame, now)
        else @counts.invalid += 1
        end
      end

      # ---- beats ----

      def receive_beat(peer, frame, now)
        number, cycle = frame.numbers
        return if number <= peer.beat

        mentions = Frames.body(frame)
        return @counts.invalid += 1 unless mentions&.all? { |mention| mention?(mention) }

        doubt_all(peer, now) if peer.beat.positive? && number - peer.beat > self.class::ANNOUNCEMENTS
        peer.beat = number
        peer.cycle = cycle if cycle > peer.cycle
        mentions.each { |name, version, count| compare(peer, name, version, count, now) }
      end

      # Changes of a time that was missed were named in beats that were missed, too.
      def doubt_all(peer, now)
        @rooms.each_key { |room| peer.doubt(room, now) }
      end

      def mention?(mention)
        mention.is_a?(Array) && mention.size == 3 && Frames.name?(mention[0]) &&
          mention[1..].all? { |number| number.is_a?(Integer) && number >= 0 }
      end

      # The beat may be later or earlier than the changes.
      def compare(peer, name, version, count, now)
        room = @rooms[name] or return
        record = room.records[peer.name]
        if count.zero?
          empty(room, peer, version, now)
        else
          record.named_in = peer.cycle if record
          known = record ? record.version : peer.buried(name)
          doubt(peer, name, now) if version > known
        end
      end

      def doubt(peer, name, now)
        return if peer.unsure.key?(name)

        @counts.repairs += 1
        peer.doubt(name, now + PATIENCE + (@random.rand * PATIENCE))
      end

      # Nobody of this process was in the room at that version.
      def empty(room, peer, version, now)
        record = room.records[peer.name]
        return if record && record.version > version

        room.records.delete(peer.name)
        peer.rooms.delete(room.name)
        peer.bury(room.name, version, now)
        forget_ids(room, record.ids, now + @limits.grace, now) if record
      end

      # ---- changes ----

      def receive_change(room, peer, frame, now)
        before, version = frame.numbers
        record = room.records[peer.name]
        return if version <= (record ? record.version : 0) || version <= peer.buried(room.name)
        return doubt(peer, room.name, now) unless before.zero? || record&.version == before

        here, gone = Frames.body(frame)
        unless version > before && Frames.entries?(here) && Frames.names?(gone)
          return @counts.invalid += 1
        end

        return replace(room, peer, version, here.to_h, now) if before.zero?

        change(room, record, here, gone, now)
        record.version = version
        empty(room, peer, version, now) if record.ids.empty? && !record.partial
      end

      def change(room, record, here, gone, now)
        here.each { |id, info| take(room, record, id, info) }
        gone.each do |id|
          next unless record.ids.key?(id)

          info = record.ids.delete(id)
          @bytes -= Room.cost(id, info)
          lost(room, id, info, now + @limits.grace, now)
        end
      end

      # An id of another process, or its new info.
      def take(room, record, id, info)
        cost = Room.cost(id, info)
        known = record.ids.key?(id)
        before = known ? Room.cost(id, record.ids[id]) : 0
        if @bytes + cost - before > @limits.replica_bytes
          @counts.refused += 1
          return record.partial = true
        end

        @bytes += cost - before
        record.ids[id.freeze] = info&.freeze
        gained(room, id) unless known
      end

      # ---- the whole of a room ----

      def receive_page(room, peer, frame, now)
        version, page, pages = frame.numbers
        return if known?(room, peer, version)

        entries = Frames.body(frame)
        unless Frames.entries?(entries) && pages.between?(1, Frames::PAGES) && page < pages
          return @counts.invalid += 1
        end
        return replace(room, peer, version, entries.to_h, now) if pages == 1

        assembly = assembly_of(room, peer, version, pages, now) or return
        return if assembly.gave_way? || assembly.parts.key?(page) || !room_for?(assembly, entries)

        assembly.parts[page] = entries
        finish_assembly(room, peer, assembly, now) if assembly.parts.size == pages
      end

      # @return [Boolean] whether such a page says nothing new
      def known?(room, peer, version)
        record = room.records[peer.name]
        return true if version < (record ? record.version : 0) || version <= peer.buried(room.name)

        record && record.version == version && !peer.unsure.key?(room.name)
      end

      def assembly_of(room, peer, version, pages, now)
        assembly = peer.assemblies[room.name]
        return if assembly && assembly.version > version
        return assembly if assembly && assembly.version == version && assembly.pages == pages

        peer.assemblies[room.name] = Peer::Assembly.new(version, pages, {}, now, 0)
      end

      # Their sum is counted anew only when it may be too large: what comes from others must not cost a walk each time.
      def room_for?(assembly, entries)
        cost = Room::ENTRY + entries.sum { |id, info| Room.cost(id, info) }
        assembly.bytes += cost
        @assembled = @assembled.to_i + cost
        make_room(ASSEMBLY_BYTES + @limits.replica_bytes)
        !assembly.gave_way?
      end

      # The largest assemblies give way, so that a room that cannot fit does not keep others from coming.
      def make_room(most)
        return if @assembled <= most

        all = @peers.each_value.flat_map { |peer| peer.assemblies.values }
        @assembled = all.sum(&:bytes)
        return if @assembled <= most

        all.sort_by { |each| -each.bytes }.each do |each|
          break if @assembled <= most * 3 / 4

          @counts.refused += 1
          @assembled -= each.bytes
          each.give_way
        end
        @peers.each_value(&:forget_assemblies) if all.size > ASSEMBLIES
      end

      def finish_assembly(room, peer, assembly, now)
        peer.assemblies.delete(room.name)
        entries = {}
        assembly.pages.times { |page| assembly.parts[page].each { |id, info| entries[id] = info } }
        replace(room, peer, assembly.version, entries, now)
      end

      def replace(room, peer, version, entries, now)
        peer.unsure.delete(room.name)
        record = room.records[peer.name]
        old = record ? record.ids : {}
        return empty(room, peer, version, now) if entries.empty?

        record ||= room.records[peer.name] = Record.new(version, {}, peer.cycle, false)
        record.version = version
        record.named_in = peer.cycle
        record.partial = false
        peer.rooms[room.name] = true
        change(room, record, entries, old.keys.reject { |id| entries.key?(id) }, now)
      end

      def receive_nobody(peer, frame, now)
        names = Frames.body(frame)
        return @counts.invalid += 1 unless Frames.names?(names)

        names.each do |name|
          room = @rooms[name] or next
          peer.unsure.delete(name)
          empty(room, peer, frame.numbers[0], now)
        end
      end

      # ---- questions ----

      def receive_question(frame, now)
        return unless [@name, "*"].include?(frame.asked)

        names = Frames.body(frame)
        return @counts.invalid += 1 unless Frames.names?(names) && names.size <= self.class::ASKED

        names.each do |name|
          next if @answers.key?(name) || @answers.size >= self.class::MOST_ANSWERS

          @answers[name] = [now, (@answered[name] || -1e9) + self.class::ANSWER_PAUSE].max
        end
      end
    end
  end
end
