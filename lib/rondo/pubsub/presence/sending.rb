# frozen_string_literal: true

# What a replica says to other processes: what changed here, beats, questions and answers. Under the lock of node.rb.
# SPDX-License-Identifier: MIT

module Rondo
  module Presence
    # The part of {Replica} that sends.
    # @api private
    module Sending
      # Seconds between two beats.
      BEAT = 1.0
      # Seconds between two answers for one room.
      ANSWER_PAUSE = 0.25
      # Rooms in one beat; those that changed come first, and leave some places for the others.
      MENTIONS = 256
      CHANGED_MENTIONS = 192
      # How often a room that has changed is named.
      ANNOUNCEMENTS = 3
      BEAT_BYTES = 64 * 1024
      # Ids that have gone, in one message.
      TOLD = 100
      # Rooms in one question.
      ASKED = 200

      private

      # The numbers above are for the longest messages that are read. Where a server publishes shorter ones, they are
      # smaller in proportion.
      def scaled(most)
        [(most * @scale).floor, 1].max
      end

      def pages(entries)
        Frames.pages(entries, scaled(Frames::PAGE_BYTES))
      end

      # ---- what changed here ----

      # Several changes at once are one message.
      def note_pending(room, id)
        (@pending[room.name] ||= {})[id] = true
      end

      def flush_pending
        return if @pending.empty?

        pending, @pending = @pending, {}
        pending.each { |name, ids| tell(@rooms[name], ids.keys) if @rooms[name] }
      end

      # Whoever has nothing of this room takes a message with 0 as the whole: it can only be the first one. Those who
      # come are told before those who go, so that the room is not empty in between.
      def tell(room, ids)
        here, gone = ids.partition { |id| room.local.key?(id) }
        parts = here.empty? ? [] : pages(room.local.slice(*here)).map { |page| [page, []] }
        parts.concat(gone.each_slice(scaled(TOLD)).map { |part| [[], part] })
        parts.each do |body|
          before = room.version
          room.version = @clock += 1
          @out << [:room, room.name, Frames.make("d", @name, before, @clock, body: body)]
        end
        announce(room)
        room.version = 0 if room.local.empty?
      end

      def announce(room)
        @announced.delete(room.name)
        @announced[room.name] = [ANNOUNCEMENTS, @clock]
      end

      # ---- beats ----

      def beat(now)
        mentions = []
        bytes = 0
        most = scaled(BEAT_BYTES)
        add = lambda do |name, version, count|
          mentions << [name, version, count]
          (bytes += name.bytesize + 24) < most
        end
        mention_changed(add)
        mention_others(mentions, add) if bytes < most
        @beat += 1
        @beat_due = now + BEAT
        @out << [:all, Frames.make("b", @name, @beat, @cycle, body: mentions)]
      end

      def mention_changed(add)
        @announced.first(CHANGED_MENTIONS).each do |name, (left, clock)|
          @announced.delete(name)
          @announced[name] = [left - 1, clock] if left > 1
          room = @rooms[name]
          count = room ? room.local.size : 0
          break unless add.call(name, count.zero? ? clock : room.version, count)
        end
      end

      # All rooms with ids of this process in turn. A cycle is over when all of them were named.
      def mention_others(mentions, add)
        began = false
        while mentions.size < MENTIONS
          if @turn.empty?
            break if began

            began = true
            @cycle += 1
            @turn = @rooms.each_value.reject { |room| room.local.empty? }.map(&:name)
          end
          room = @rooms[@turn.pop]
          next if room.nil? || room.local.empty? || room.version.zero?

          break unless add.call(room.name, room.version, room.local.size)
        end
      end

      # ---- questions and answers ----

      # One question for all processes that have something to say, or one for each.
      def ask(now)
        due = {}
        @peers.each do |name, peer|
          peer.unsure.each { |room, (at, _)| (due[room] ||= []) << name if at <= now }
        end
        return if due.empty?

        due.first(scaled(ASKED)).group_by { |_, names| names.size > 1 ? "*" : names.first }.each do |whom, questions|
          questions.each { |room, names| names.each { |name| @peers[name].asked(room, now, @random) } }
          @out << [:all, Frames.make("a", @name, whom, body: questions.map(&:first))]
        end
      end

      # All who have asked since are answered at once.
      def answer(now)
        due = @answers.select { |_, at| at <= now }.keys
        return if due.empty?

        due.each { |name| @answers.delete(name) }
        here, nobody = due.partition { |name| @rooms[name] && !@rooms[name].local.empty? }
        here.each { |name| send_room(@rooms[name]) }
        nobody.each_slice(scaled(ASKED)) { |names| @out << [:all, Frames.make("e", @name, @clock, body: names)] }
        here.each { |name| @answered[name] = now }
      end

      def send_room(room)
        parts = pages(room.local)
        parts.each_with_index do |page, index|
          @out << [:room, room.name, Frames.make("s", @name, room.version, index, parts.size, body: page)]
        end
      end
    end
  end
end
