# frozen_string_literal: true

# Who is present, as one process knows it: its own ids, and a copy of what other processes say of the rooms that it
# follows. It has no thread, no clock and no socket: node.rb gives it messages and the time, and sends what is in `out`.
# So the tests run many of them with lost, late and repeated messages. docs/decisions/0068-presence.md has the reasons.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/presence/frames"
require "rondo/pubsub/presence/limits"
require "rondo/pubsub/presence/peer"
require "rondo/pubsub/presence/receiving"
require "rondo/pubsub/presence/room"
require "rondo/pubsub/presence/sending"

module Rondo
  module Presence
    # @api private
    class Replica
      include Receiving
      include Sending

      # Without its own beat for so long, a process does not hear others either, and drops nobody.
      DEAF = 2.5
      # Seconds of that after which ids leave all the same: their memory counts no more.
      DEAF_MOST = 30
      # A process that has begun just now does not know the others yet.
      YOUTH = 0.3
      # Answers that wait, and processes that are known, at most.
      MOST_ANSWERS = 20_000
      MOST_PEERS = 4096
      # Joins that are owed, at most; the oldest are forgotten.
      MOST_OWED = 10_000
      # Seconds between two looks at what is old.
      AUDIT = 5.0
      # A room that its process has not named for so many cycles is doubtful.
      SILENT_CYCLES = 3
      # Rooms that were cut are asked for when less than this part of the memory is taken.
      ROOMY = 0.9

      # Counted since the process began.
      Counts = Struct.new(:refused, :lost, :repairs, :invalid)

      # @return [String] of this process, until it ends
      attr_reader :name
      # @return [Array<Array>] what is to be done, in order: [:all, text], [:room, room, text], [:follow, room],
      #   [:unfollow, room]
      attr_reader :out
      # @return [Hash{String => Room}]
      attr_reader :rooms
      # @return [Hash{String => Peer}]
      attr_reader :peers
      # @return [Integer] bytes of all entries
      attr_reader :bytes
      # @return [Counts]
      attr_reader :counts
      # @return [Limits]
      attr_accessor :limits

      # @param largest [Integer] bytes of a message that the server publishes
      def initialize(name, limits, now, largest: Frames::MOST_BYTES, random: Random.new)
        @name = name
        @limits = limits
        @scale = [largest.fdiv(Frames::MOST_BYTES), 1].min
        @random = random
        @began = @echo_at = @last_tick = now
        @out = []
        @rooms = {}
        @peers = {}
        @gone = {}
        @bytes = 0
        @counts = Counts.new(0, 0, 0, 0)
        @clock = @beat = @cycle = 0
        @beat_due = now
        @audit_due = now + AUDIT
        @deaf = true # until its first beat comes back
        @deaf_at = now
        @announced = {}
        @turn = []
        @answers = {}
        @answered = {}
        @pending = {}
        @lingering = {}
        @changed = {}
        @owed = {}
      end

      # ---- this process ----

      # @return [Symbol] :entered; :full when a limit forbids it
      def join(name, id, info, now)
        cost = Room.cost(id, info)
        return refuse if @bytes + cost > @limits.replica_bytes
        return refuse unless (room = follow(name, now))

        known = room.local.key?(id)
        before = known ? Room.cost(id, room.local[id]) : 0
        return :entered unless room.enter(id, info)

        @bytes += cost - before
        note_pending(room, id)
        gained(room, id) unless known
        :entered
      end

      # A connection that is there already has other info now.
      # @return [Symbol] as {#join}
      def update(name, id, info)
        room = @rooms[name]
        before = room.local[id]
        return :entered if before == info

        change = Room.cost(id, info) - Room.cost(id, before)
        return refuse if @bytes + change > @limits.replica_bytes

        @bytes += change
        room.local[id] = info
        note_pending(room, id)
        :entered
      end

      # @return [void]
      def leave(name, id, now)
        room = @rooms[name] or return
        return unless room.local.key?(id)

        info = room.local[id]
        return unless room.leave(id)

        @bytes -= Room.cost(id, info)
        note_pending(room, id)
        lost(room, id, info, now + @limits.grace, now)
      end

      # Others are told that it ends.
      # @return [void]
      def finish
        flush_pending
        @out << [:all, Frames.make("x", @name)]
      end

      # ---- rooms ----

      # From now on messages about the room come, and others are asked.
      # @return [Room, nil] nil: there are too many
      def follow(name, now, until_time: 0)
        room = @rooms[name]
        unless room
          return if @rooms.size >= @limits.rooms

          room = @rooms[name] = Room.new(name)
          @out << [:follow, name]
          @peers.each_value { |peer| peer.doubt(name, now) }
        end
        room.until = [room.until, until_time].max
        room
      end

      # @return [Boolean] whether blocks will be told of changes
      def listen(name, now)
        room = follow(name, now) or return false
        room.listen(@name)
        @changed[name] = true if room.changed?
        true
      end

      # @return [Boolean] whether all other processes have said who is there
      def complete?(name, now)
        now - @began >= YOUTH && !@deaf && @rooms.key?(name) && @peers.none? { |_, peer| peer.unsure.key?(name) }
      end

      # @return [Hash{String => String, nil}] ids with their info
      def entries(name)
        @rooms[name]&.entries(@name) || {}
      end

      # @return [Boolean] whether this is the process with the smallest name
      def first?
        @peers.each_key.all? { |other| @name < other }
      end

      # Whether blocks with `once` are called here for this change. A process that only was silent tells no join when it
      # is heard again, so that is owed by who told the leave of its ids. Asked once for each change.
      # @param silent [Boolean, nil] whether the id left with a silent process
      # @return [Boolean]
      def once?(room, kind, id, silent)
        first = first?
        return @owed.delete([room, id]) || first if kind == :join

        @owed[[room, id]] = true if first && silent
        @owed.shift if @owed.size > MOST_OWED
        first
      end

      # A room with more changes comes again after the others.
      # @return [Array(String, Array), nil] a room and its changes, see {Room#take_changes}
      def take_changes(most)
        name, = @changed.shift || return
        room = @rooms[name]
        changes = room ? room.take_changes(@name, most) : []
        @changed[name] = true if room&.changed?
        [name, changes]
      end

      # @return [Boolean]
      def changes?
        !@changed.empty?
      end

      # ---- time ----

      # Does what is due. `out` has the messages afterwards.
      # @return [void]
      def tick(now)
        flush_pending
        notice_stillness(now)
        drop_silent(now) unless @deaf
        expire(now) unless @deaf && now - @deaf_at < DEAF_MOST
        ask(now)
        answer(now)
        beat(now) if now >= @beat_due
        audit(now) if now >= @audit_due
        @last_tick = now
      end

      # @return [Float] when the next tick is due
      def next_due(now)
        dues = [@beat_due]
        dues << next_leave(now) unless @deaf
        @answers.each_value { |due| dues.push(due) } if @answers.size <= 64
        dues << (now + 0.02) if @answers.size > 64
        dues << (now + 0.05) if @peers.any? { |_, peer| !peer.unsure.empty? }
        dues.compact.min
      end

      # @return [Array<Integer>] rooms, ids, bytes, processes, refused, lost, repairs, invalid
      def numbers
        ids = @rooms.sum { |_, room| room.local.size + room.remote_count }
        [@rooms.size, ids, @bytes, @peers.size, *@counts.to_a]
      end

      private

      def next_leave(now)
        @lingering.size > 64 ? now + 0.1 : @lingering.keys.filter_map { |name| @rooms[name]&.next_leave }.min
      end

      def refuse
        @counts.refused += 1
        :full
      end

      def gained(room, id)
        room.gain(id)
        @changed[room.name] = true if room.changed?
      end

      def lost(room, id, info, deadline, now)
        room.lose(id, info, deadline, now)
        @lingering[room.name] = true if room.lingering?
        @changed[room.name] = true if room.changed?
      end

      # ---- others that are gone ----

      # A process that was stopped, or whose loop stands still, has not heard others; they have not been silent, and ids
      # may have come back elsewhere.
      def notice_stillness(now)
        stood_still = now - @last_tick > DEAF / 2
        return unless stood_still || (!@deaf && now - @echo_at > DEAF)

        @deaf = true
        @deaf_at = now
      end

      def drop_silent(now)
        @peers.each_value.select { |peer| now - peer.heard_at > @limits.silence }.each do |peer|
          @counts.lost += 1
          drop(peer, [peer.heard_at + @limits.grace, now].max, now) { |room, ids| room.note_silent(ids) }
        end
      end

      def drop(peer, deadline, now)
        @peers.delete(peer.name)
        peer.rooms.each_key do |name|
          room = @rooms[name]
          record = room&.records&.delete(peer.name) or next
          forget_ids(room, record.ids, deadline, now)
          yield room, record.ids.keys if block_given?
        end
      end

      def forget_ids(room, ids, deadline, now)
        ids.each do |id, info|
          @bytes -= Room.cost(id, info)
          lost(room, id, info, deadline, now)
        end
      end

      def expire(now)
        @lingering.each_key.to_a.each do |name|
          room = @rooms[name]
          room&.expire(now)
          @changed[name] = true if room&.changed?
          @lingering.delete(name) unless room&.lingering?
        end
      end

      # What is doubtful or not needed any more.
      def audit(now)
        @audit_due = now + AUDIT
        @gone.delete_if { |_, at| now - at > Peer::TOMB }
        @answered.delete_if { |_, at| now - at > ANSWER_PAUSE }
        @peers.each_value { |peer| audit_peer(peer, now) }
        @rooms.each_value.select { |room| unneeded?(room, now) }.each { |room| unfollow(room) }
      end

      def audit_peer(peer, now)
        peer.forget_old(now)
        free = @bytes < ROOMY * @limits.replica_bytes
        peer.rooms.each_key do |name|
          record = @rooms[name]&.records&.[](peer.name) or next
          peer.doubt(name, now) if (record.partial && free) || peer.cycle - record.named_in >= SILENT_CYCLES
        end
      end

      def unneeded?(room, now)
        room.local.empty? && room.told.nil? && !room.lingering? && room.until <= now && !@pending.key?(room.name)
      end

      def unfollow(room)
        room.records.each_value { |record| record.ids.each { |id, info| @bytes -= Room.cost(id, info) } }
        @peers.each_value { |peer| peer.forget(room.name) }
        @rooms.delete(room.name)
        @changed.delete(room.name)
        @out << [:unfollow, room.name]
      end
    end
  end
end
