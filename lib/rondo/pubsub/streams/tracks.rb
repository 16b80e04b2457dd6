# frozen_string_literal: true

# How far each channel with a history has been delivered here, and what is read from its stream to go on without a gap.
# Under the engine's mutex.
#
#   follow ──▶ SUBSCRIBE is confirmed ──▶ the clock is read, PING ──▶ live: the next message names the one before it
#                                                                       │ another one is missing,
#                                                                       ▼ or the connection was lost
#                                     everything is held, streams are read, PING ──▶ sorted by id, delivered
#
# What is published after SUBSCRIBE is owed. When PING is answered, all of it up to the clock has come.
#
# Ids ascend over all channels, and everything is delivered in their order: a client of several channels comes back
# with one id.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/kept"
require "rondo/pubsub/streams/missed"
require "rondo/pubsub/streams/scripts"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # A channel. `last`: delivered up to here; nil: nothing is owed yet. `number`: of its subscription. `recent`: live
      # ones while a copy is read, with their bytes. `newest`: the last message; `last` may be a time between two.
      # @api private
      Track = Struct.new(:channel, :last, :number, :recent, :newest, :recent_bytes)

      # Of one engine.
      # @api private
      class Tracks
        # What a message of a stream begins with in Redis.
        HEAD = /\A\0rondo (\d+) (\d+) (\d+) ([tb])\n/n
        MAGIC = "\0rondo ".b.freeze
        # Bytes held; above them they are read again.
        HELD_MAX = 64 << 20
        # Bytes of what was missed, over all channels; above them the older half is lost. What was held is read again.
        FILLED_MAX = 2 * HELD_MAX
        # Seconds until the hub is offered what it did not take.
        RETRY = 0.05

        # @return [Integer] the highest id that is known
        attr_reader :seen

        # @param keys [Scripts::Keys]
        # @param outlet [#item, #give, #begins_at] the hub: false when it does not take it
        # @param copy_max [Integer] bytes of the messages of a copy; one message may be above
        # @param filled_max [Integer] bytes of what was missed
        def initialize(keys, outlet, copy_max: Scripts::PAGE, filled_max: FILLED_MAX)
          @keys = keys
          @outlet = outlet
          @copy_max = copy_max
          @tracks = {}
          @seen = @reached = 0
          @filled = Missed.new(filled_max)
          @held = []
          @held_bytes = 0
          @copies = {}
          forget_link
        end

        # @param channel [String]
        # @param after [Integer] 1: from now on
        # @param number [Integer] of its subscription
        # @return [void]
        def follow(channel, after, number)
          return if @tracks[channel]

          track = @tracks[channel] = Track.new(channel, after > 1 ? after : nil, number, nil, nil)
          (track.last ? @behind : @joining)[channel] = track
          @has_told_begin ||= after > 1 # the hub says so itself
          see(after)
        end

        # @param channel [String]
        # @return [void]
        def forget(channel)
          @tracks.delete(channel) or return
          [@behind, @joining, @wanted, @ends, @again, @copies, @copying].each { |each| each.delete(channel) }
        end

        # @param channel [String]
        # @return [Integer] id of its last message that was delivered; 0: unknown
        def last_of(channel)
          @tracks[channel]&.newest || 0
        end

        # @param channel [String] the hub wants a copy of
        # @param number [Integer] of the subscription before it
        # @return [void]
        def copy(channel, number)
          follow(channel, 1, number)
          @copies[channel] = number
        end

        # ---- the connection ----

        # Nothing is live until {#connected}.
        # @return [void]
        def forget_link
          @reached = @seen if @is_whole && !held?
          @is_whole = @is_settling = @is_blocked = false
          @wanted, @ends, @again = Array.new(3) { {} }
          @reading = {}.compare_by_identity
          @marking = []
          @copying&.each_key { |channel| @copies[channel] = 0 }
          @copying = {}
          @filled.clear
          @behind, @joining = @tracks.partition { |_, track| track.last }.map(&:to_h)
          @tracks.each_value { |track| track.recent = nil }
        end

        # Whether Redis still has what it gave, before anything else is asked.
        # @param commands [Link]
        # @param acknowledged [Array] of {Publisher#acknowledged}
        # @return [void]
        def check(commands, acknowledged)
          by, *numbers = acknowledged
          channel, id = newest
          keys = [*@keys.times, by, *@keys.of(channel)]
          ask_script(commands, Scripts::CHECK, keys, [@seen, *numbers, id]) { |reply| see(reply.to_i) }
        end

        # All subscriptions are confirmed on a new connection.
        # @return [void]
        def connected
          @is_whole = true
        end

        # Whether a message that is published now would be owed to who subscribed before.
        # @param number [Integer] of a subscription
        # @return [Boolean]
        def begun?(number)
          first = @marking.first || @joining.each_value.first
          first.nil? || number < first.number
        end

        # Asks what is to be asked.
        # @param commands [Link]
        # @param listener [Link, nil]
        # @yieldparam number [Integer] whether this subscription is confirmed
        # @yieldreturn [Boolean]
        # @return [void]
        def ask(commands, listener, &)
          @listener = listener
          return unless @is_whole && listener&.ready?

          join(commands, &)
          @is_blocked = false if lacking? # it is sorted with what is read
          ask_missing(commands)
          ask_copies(commands, &)
          release if @is_blocked
        end

        # @return [Numeric, nil] seconds until {#ask} is to be called again
        def pause
          RETRY if @is_blocked || (@copies.any? && @is_whole)
        end

        # ---- messages ----

        # @param channel [String]
        # @param message [String] as Redis gave it
        # @return [Array(String, String), nil] what is not of a stream
        def take(channel, message)
          return [channel, message] unless message.b.start_with?(MAGIC)

          head = HEAD.match(message.b) or return [channel, message]
          text = head.post_match
          return [channel, text_of(text, head[4])] if head[3] == "0"

          item = Queued::Item.new(channel, head[1].to_i, head[2].to_i, head[3].to_i, head[4], text)
          see(item.id)
          begin_before(item)
          (!held? && deliver(item)) || hold(item)
          nil
        end

        # @param id [Integer]
        # @return [void]
        def see(id)
          @seen = id if id > @seen
        end

        private

        def text_of(bytes, kind)
          kind == "t" ? bytes.force_encoding(Encoding::UTF_8) : bytes
        end

        # The last message that was delivered here, or will be. A Redis that went back lacks it before any other one.
        def newest
          track = @tracks.each_value.max_by { |each| each.newest || 0 }
          item = @held.max_by { |each| each.text ? each.id : 0 }
          return [item.channel, item.id] if item&.text && item.id > (track&.newest || 0)

          track&.newest ? [track.channel, track.newest] : ["", 0]
        end

        # ---- what is new ----

        # Confirmed channels go on where they were, or begin.
        def join(commands)
          want(@behind.shift.first) while @behind.any? && yield(@behind.each_value.first.number)
          return if @marking.any?

          @marking << @joining.shift.last while @joining.any? && yield(@joining.each_value.first.number)
          ask_clock(commands) if @marking.any?
        end

        def ask_clock(commands)
          ask_script(commands, Scripts::CLOCK, @keys.times, [@seen]) do |reply|
            mark = reply.to_i
            see(mark)
            @listener.ask(["PING"]) do
              @marking.each { |track| track.last ||= mark }
              @marking = []
              @has_told_begin ||= @outlet.begins_at(mark) || true unless held? # nothing is owed before it
            end
          end
        end

        # It came before the clock was read. One that comes before the subscription is confirmed is of an earlier
        # subscription, and there may be others between.
        def begin_before(item)
          track = @tracks[item.channel]
          return if track.nil? || track.last

          track.last = item.id - 1
          @behind[item.channel] = track if @joining.delete(item.channel)
        end

        def ask_script(commands, script, keys, arguments)
          commands.ask(Scripts.call(script, keys, arguments)) do |reply|
            Redis::Link.check(reply)

            yield reply
          end
        end

        def read(commands, track, *words, &block)
          ask_script(commands, Scripts::READ, [*@keys.times, *@keys.of(track.channel)], [@seen, *words], &block)
        end

        # ---- what is missing ----

        def want(channel)
          @wanted[channel] = @tracks[channel].last if @tracks[channel]&.last
          true
        end

        def held?
          @is_blocked || gathered? || lacking?
        end

        # `@ends`: of the channels that were read, and where they end; their ids are the clock of the answer.
        def gathered?
          @held.any? || @filled.any? || @ends.any?
        end

        def lacking?
          @wanted.any? || @reading.any? || @behind.any?
        end

        def hold(item)
          @held << item
          return if (@held_bytes += item.bytes) < HELD_MAX

          @held.each { |held| want(held.channel) }
          @held.clear
          @held_bytes = 0
        end

        def ask_missing(commands)
          ask_next(commands, *@wanted.shift) while @wanted.any? && commands.pending < Redis::Pump::WINDOW
          settle if @reading.empty? && gathered? && !@is_blocked
        end

        def ask_next(commands, channel, after)
          track = @tracks[channel] or return
          @reading[track] = true
          read(commands, track, after, "+", Scripts::PAGE, "next") { |reply| filled(track, reply) }
        end

        def filled(track, reply)
          began, clock, now, last, more, found = reply
          see(clock.to_i)
          @reading.delete(track)
          @is_ahead = true
          return unless @tracks[track.channel].equal?(track)

          found.each do |id, previous, kind, text|
            next if id.to_i < began.to_i # it is of an earlier life, and part of the gap

            @filled << Queued::Item.new(track.channel, began.to_i, previous.to_i, id.to_i, kind, text)
          end
          return @wanted[track.channel] = found.last.first.to_i if more == 1

          @ends[track.channel] = Queued::Item.new(track.channel, began.to_i, upto(last, clock, now), clock.to_i)
        end

        # Up to where the channel may have had messages. Redis may have forgotten them since `@reached`: the highest id
        # that was known when the connection was lost and nothing was missing.
        def upto(last, clock, now)
          forgotten = [unknown_before(last, now), clock.to_i].min
          forgotten > @reached ? forgotten : last.to_i
        end

        # What was published before is here when the answer is. What is read meanwhile is ahead of that.
        def settle
          return if @is_settling

          @is_settling = true
          @is_ahead = false
          @listener.ask(["PING"]) do
            @is_settling = false
            release unless lacking? || @is_ahead
          end
        end

        def release
          items = in_order(@filled.to_a + @held)
          holes = holes_of(items)
          return if read_again(holes)

          items = in_order(items + holes) if holes.any?
          @ends.clear
          @again.clear
          @filled.clear
          @held.clear
          @held_bytes = 0
          @is_blocked = false
          items.shift while items.any? && deliver(items.first)
          items.each { |item| hold(item) }
        end

        # What was published behind an answer, and did not come, is in Redis all the same if it was lost on its way here
        # (between the nodes of a Redis Cluster, for example). It is read, but only once.
        def read_again(holes)
          unsure = holes.select { |hole| hole.id > @ends[hole.channel].id && !@again.key?(hole.channel) }
          unsure.each do |hole|
            @again[hole.channel] = true
            @wanted[hole.channel] = @ends[hole.channel].id
          end
          unsure.any?
        end

        # One that was read and came, too, is there once. Gaps of several channels may have one id.
        def in_order(items)
          items.uniq { |item| item.text ? item.id : item }.sort_by(&:id)
        end

        # Of the channels that were read. All of a channel is here up to the answer, and what came since. So what a
        # message does not follow is nowhere, but for what {#read_again} reads: Redis has lost all, the oldest or newest
        # messages, or some that somebody deleted. A gap is told in its place, before any message of another channel
        # with a higher id.
        def holes_of(items)
          last = @ends.to_h { |channel, _| [channel, @tracks[channel].last] }
          [*items, *@ends.values].filter_map do |item|
            after = last[item.channel] or next
            floor = [item.previous, item.began].max
            last[item.channel] = [after, floor, item.id.to_i].max
            Queued::Item.new(item.channel, item.began, 0, floor) if floor > after
          end
        end

        # ---- delivering ----

        # @return [Boolean] false when it has to wait
        def deliver(item)
          track = @tracks[item.channel]
          return @outlet.item(item) || true unless track
          return true if track.last.nil? || item.id <= track.last # held since an earlier subscription; known
          return !want(track.channel) unless item.text.nil? || follows?(track, item)

          @is_blocked = !@outlet.item(item)
          return false if @is_blocked

          track.last = item.id
          return true unless item.text

          track.newest = item.id
          keep_recent(track, item) if track.recent
          true
        end

        # A copy without the oldest ones has a hole, and is whole behind it.
        def keep_recent(track, item)
          track.recent << item
          track.recent_bytes += item.bytes
          track.recent_bytes -= track.recent.shift.bytes while track.recent_bytes > @copy_max && track.recent.size > 1
        end

        def follows?(track, item)
          item.previous <= track.last && item.began <= track.last
        end

        # ---- copies for the hub ----

        def ask_copies(commands)
          return if held?

          @copies.each do |channel, number|
            next unless !@copying[channel] && yield(number)

            @copies.delete(channel)
            @copying[channel] = true
            track = @tracks[channel]
            track.recent = []
            track.recent_bytes = 0
            ask_copy(commands, track, "+", @copy_max)
          end
        end

        # Page by page, from the newest message on. `whole`: the answer to the first page, with the messages of all.
        def ask_copy(commands, track, upto, room, whole = nil)
          read(commands, track, 0, upto, room, "newest") do |reply|
            next unless @tracks[track.channel].equal?(track)

            more, found = reply.last(2)
            whole ? whole.last.concat(found) : whole = reply
            room -= found.sum { |*, text| text.bytesize + 1 }
            next read_copy(track, whole) if more.zero? || room <= 0

            ask_copy(commands, track, found.last.first.to_i - 1, room, whole)
          end
        end

        # What was published before it was read has been delivered when the answer to PING is here.
        def read_copy(track, reply)
          @listener.ask(["PING"]) do
            next unless @tracks[track.channel].equal?(track)

            @copying.delete(track.channel)
            track.last ||= reply[1].to_i
            held? || lacks?(track, reply.last) ? ask_again(track) : give_copy(track, reply)
          end
        end

        # A message that Redis has did not come: it is read first.
        def lacks?(track, found)
          found.any? && found.first.first.to_i > track.last && want(track.channel)
        end

        def give_copy(track, reply)
          began, clock, now, last, _more, found = reply
          items = found.reverse.map do |id, previous, kind, text|
            Queued::Item.new(track.channel, 0, previous.to_i, id.to_i, kind, text)
          end
          items.select! { |item| item.id <= track.last }
          newest = items.last&.id || 0
          items.concat(track.recent.select { |item| item.id > newest })
          floor, items = whole_part(items, [began.to_i, unknown_before(last, now)].max, last.to_i)
          see(clock.to_i)
          track.recent = nil
          @outlet.give(track.channel, floor, now.to_i, clock.to_i, items) or ask_again(track)
        end

        def ask_again(track)
          track.recent = nil
          @copies[track.channel] = 0
        end

        # A channel of which Redis does not know the last id may have had messages that long ago.
        def unknown_before(last, now)
          last == "0" ? now.to_i - (Scripts::LAST_TTL * 1000) : 0
        end

        # From the last hole on. `last`: of the channel when it was read.
        def whole_part(items, floor, last)
          holes = items.each_cons(2).filter_map { |one, two| two.previous if two.previous > one.id }
          holes << items.first.previous if items.any?
          holes << last if items.none? { |item| item.id == last }
          floor = [floor, *holes].max
          [floor, items.select { |item| item.id > floor }]
        end
      end
    end
  end
end
