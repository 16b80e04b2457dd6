# frozen_string_literal: true

# Presence of one process: a thread that takes messages of other processes from a mailbox of the server, gives them to
# the replica, and publishes what that has to say. Messages need no thread of the application, so `list` may wait on the
# only one. Blocks run as tasks of the server.
# SPDX-License-Identifier: MIT

require "digest"
require "io/nonblock"
require "securerandom"
require "rondo/pubsub/presence/replica"

module Rondo
  module Presence
    # @api private
    class Node
      # Channels that no pattern matches: docs/decisions/0050-channels-of-the-server.md.
      PREFIX = "\0rondo:presence:"
      # Ids whose blocks are called before another task may run.
      BATCH = 64
      # Seconds between two lines of the log about the same thing.
      QUIET = 60

      # @return [Server::Core]
      attr_reader :core

      # @param core [Server::Core] that runs in this process
      # @param limits [Limits]
      # @param secret [String, nil]
      def initialize(core, limits, secret)
        @core = core
        @limits = limits
        @pid = Process.pid
        @channel = "#{PREFIX}#{Digest::SHA256.hexdigest("rondo presence #{secret}")[0, 32]}".b.freeze
        @mutex = Mutex.new
        @news = ConditionVariable.new
        @waiting = 0
        @clients = {}.compare_by_identity
        @changes = []
        @calls = []
        @replica = Replica.new(SecureRandom.hex(8), limits, now, largest: core.max_publish_bytes)
        @bell, @rope = IO.pipe
        @rope.nonblock = true
        @said = {}
        @secret = !secret.nil?
      end

      # @return [self]
      def start
        @key = @core.mailbox(@rope.fileno)
        @core.mailbox_follow(@key, @channel)
        warn_of_secret unless @secret
        warn_of_size
        @thread = Thread.new { run }
        @thread.name = "rondo presence"
        self
      end

      # @return [Boolean] whether this is the process that has made it
      def here?
        @pid == Process.pid
      end

      # Tells the others. Their ids are forgotten.
      # @return [void]
      def stop
        return unless here?

        @ended = true
        ring
        @thread&.join(1) || @thread&.kill
        @mutex.synchronize { @replica.finish }
        perform
        @core.note_presence(Array.new(4, 0) + @replica.counts.to_a)
        @core.unsubscribe(@key)
        [@bell, @rope].each(&:close)
      end

      # A client that is closed enters nothing. Whoever tells of its end waits for the mutex, and finds its rooms.
      # @return [Boolean]
      def join(client, room, id, info)
        entered = @mutex.synchronize { client.__send__(:note_joined) && enter(client, room, id, info) } or return false
        if entered == :full
          return complain(:limit, "! Presence: a limit of Rondo::Presence was reached; a join was refused")
        end

        ring
        true
      end

      # @return [Boolean]
      def leave(client, room)
        left = @mutex.synchronize do
          rooms = @clients[client]
          at = place_of(rooms, room) or next
          _, id = rooms.slice!(at, 2)
          @clients.delete(client) if rooms.empty?
          @replica.leave(room, id, now)
          true
        end
        ring if left
        left || false
      end

      # @return [void]
      def leave_all(client)
        return unless here?

        @mutex.synchronize do
          rooms = @clients.delete(client) or return
          rooms.each_slice(2) { |room, id| @replica.leave(room, id, now) }
        end
        ring
      end

      # @return [Hash{String => String, nil}, nil] nil: too many rooms are followed
      def list(room, timeout)
        limit = now + timeout
        @mutex.synchronize do
          @replica.follow(room, now, until_time: now + LISTED) or return
          wait_for(room, limit) unless @replica.complete?(room, now)
          @replica.entries(room)
        end
      end

      # @return [void]
      def listen(room)
        followed = @mutex.synchronize { @replica.listen(room, now) }
        complain(:rooms, "! Presence: too many rooms are followed; blocks of one are not called") unless followed
        ring
      end

      # @return [Boolean]
      def first?
        @mutex.synchronize { @replica.first? }
      end

      private

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      def ring
        @rope.write_nonblock(".", exception: false)
      rescue IOError, SystemCallError
        nil # it has ended
      end

      # ---- clients ----

      # One client has few rooms, so an Array of rooms and ids is smaller than a Hash.
      def place_of(rooms, room)
        rooms && (0...rooms.size).step(2).find { |index| rooms[index] == room }
      end

      def enter(client, room, id, info)
        rooms = @clients[client]
        at = place_of(rooms, room)
        return @replica.update(room, id, info) if at && rooms[at + 1] == id
        return refuse if !at && rooms && rooms.size / 2 >= @limits.rooms_per_client

        result = @replica.join(room, id, info, now)
        return result if result == :full

        if at
          @replica.leave(room, rooms[at + 1], now)
          rooms[at + 1] = id
        else
          (@clients[client] ||= []).push(@replica.rooms[room].name, id)
        end
        result
      end

      def refuse
        @replica.counts.refused += 1
        :full
      end

      # ---- the thread ----

      def run
        until @ended
          begin
            turn
          rescue StandardError => e
            complain(e.class, "! Presence: #{e.full_message(highlight: false)}")
            sleep 0.1
          end
        end
      end

      def turn
        @bell.wait_readable([@mutex.synchronize { @replica.next_due(now) } - now, 0.001].max)
        @bell.read_nonblock(4096, exception: false)
        receive
        lost = @replica.counts.lost
        @mutex.synchronize { @replica.tick(now) }
        perform
        tell_of_lost(@replica.counts.lost - lost)
        show
        call_blocks
      end

      def receive
        until (taken = @core.mailbox_take(@key)).empty?
          @mutex.synchronize do
            taken.each_slice(2) { |channel, message| receive_one(channel, message) }
            @news.broadcast if @waiting.positive?
          end
        end
      end

      # The others of its batch are read also when this one raises something.
      def receive_one(channel, message)
        @replica.receive(room_of(channel), message, now)
      rescue StandardError => e
        @replica.counts.invalid += 1
        complain(e.class, "! Presence: #{e.full_message(highlight: false)}")
      end

      # @return [String, nil]
      def room_of(channel)
        return if channel.bytesize == @channel.bytesize

        channel.byteslice((@channel.bytesize + 1)..).force_encoding(Encoding::UTF_8)
      end

      # What the replica wants, in its order.
      def perform
        until (out = @mutex.synchronize { @replica.out.shift(256) }).empty?
          out.each { |what, *words| do_one(what, *words) }
        end
      end

      def do_one(what, room, text = nil)
        case what
        when :all then publish(@channel, room)
        when :room then publish("#{@channel}:#{room.b}", text)
        when :follow then @core.mailbox_follow(@key, "#{@channel}:#{room.b}")
        when :unfollow then @core.mailbox_leave(@key, "#{@channel}:#{room.b}")
        end
      end

      # The other workers hear of it by the hub, while an engine is away, too. What comes twice has an old version.
      def publish(channel, text)
        PubSub::CLUSTER.publish(channel, text)
        PubSub.publish(channel, text) unless PubSub.default.equal?(PubSub::CLUSTER)
      rescue ArgumentError => e
        complain(:publish, "! Presence: a message could not be published: #{e.message}")
      end

      def show
        return if @shown && now - @shown < Replica::BEAT / 2

        @shown = now
        @core.note_presence(@mutex.synchronize { @replica.numbers })
      end

      def tell_of_lost(count)
        return unless count.positive?

        PubSub.log.warn "! Presence: #{count} other #{count == 1 ? "process was" : "processes were"} not heard for " \
                        "#{@limits.silence} s; their ids have left"
      end

      # @return [false]
      def complain(what, line)
        time = now
        return false if @said[what] && time - @said[what] < QUIET

        @said[what] = time
        PubSub.log.error line
        false
      end

      def warn_of_secret
        PubSub.log.warn "! Presence has no secret: clients that may choose any name of a channel could pretend to be " \
                        "there. Set RONDO_PRESENCE_SECRET (docs/PRESENCE.md)"
      end

      def warn_of_size
        needed = Frames.needed(@limits.info_bytes)
        return if @core.max_publish_bytes >= needed

        PubSub.log.warn "! Presence: max_publish_bytes is #{@core.max_publish_bytes}, less than #{needed}: other " \
                        "processes may not hear of long rooms, ids and infos (docs/PRESENCE.md)"
      end

      # ---- waiting and blocks ----

      def wait_for(room, limit)
        @waiting += 1
        ring
        until @replica.complete?(room, now) || @ended
          left = limit - now
          break unless left.positive?

          @news.wait(@mutex, [left, 0.05].min)
        end
      ensure
        @waiting -= 1
      end

      # One task at a time calls blocks.
      def call_blocks
        return unless @mutex.synchronize { !@calling && (untold? || @replica.changes?) && (@calling = true) }

        Rondo.run { work_off }
      rescue TaskLimitError
        @calling = false # with the next turn
      end

      # What a block has kept from being told, because it ended the task, comes first.
      def work_off
        take_changes unless untold?
        tell
        tell(*@changes.shift) until @changes.empty?
      ensure
        @calling = false
        ring
      end

      def untold?
        !(@changes.empty? && @calls.empty?)
      end

      def take_changes
        name, changes = @mutex.synchronize { @replica.take_changes(BATCH) }
        @changes = changes.to_a.map { |change| [name, *change] }
      end

      # @param change [Array] name of the room, kind, id, info, and whether it was silent; none: calls are left
      def tell(*change)
        @calls = calls_of(*change) if change.any?
        call(*@calls.shift) until @calls.empty?
      end

      def calls_of(name, kind, id, info, silent = nil)
        value = Presence.parse(info)
        listeners = Presence.listeners(name).select { |listener| listener.kind == kind }
        once = listeners.any?(&:once) && @mutex.synchronize { @replica.once?(name, kind, id, silent) }
        listeners.filter_map { |listener| [name, listener, id, value] if once || !listener.once }
      end

      def call(name, listener, id, value)
        listener.block.call(id, value)
      rescue *PubSub::ERRORS => e
        PubSub.log.error "! Presence: a block for #{listener.kind} of #{name.inspect}: " \
                         "#{e.full_message(highlight: false)}"
      end
    end
  end
end
