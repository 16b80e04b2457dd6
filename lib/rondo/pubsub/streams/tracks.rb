# frozen_string_literal: true

# How far each channel with a history has been delivered here, and what is read from its stream to go on without a gap.
# Under the engine's mutex.
#
#   follow ──▶ the clock is read ──▶ SUBSCRIBE ──▶ live: the next message names the one before it
#                                                    │ another one is missing, or the connection was lost
#                                                    ▼
#                                 everything is held, streams are read, PING ──▶ sorted by id, delivered
#
# Ids ascend over all channels, and everything is delivered in their order: a client of several channels comes back
# with one id.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/streams/scripts"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # A message of a stream, or the notice of a gap (text is nil).
      # @api private
      Item = Struct.new(:channel, :began, :previous, :id, :kind, :text)

      # A channel. `last`: delivered up to here; nil: the clock is not read yet. `recent`: live ones while it is read.
      # `is_fresh`: followed since this connection. `newest`: the last message; `last` may be a time between two.
      # `tries`: how often it was read since then because a message was missing.
      # @api private
      Track = Struct.new(:channel, :last, :recent, :is_fresh, :newest, :tries)

      # Of one engine.
      # @api private
      class Tracks
        # What a message of a stream begins with in Redis.
        HEAD = /\A\0rondo (\d+) (\d+) (\d+) ([tb])\n/n
        MAGIC = "\0rondo ".b.freeze
        # Bytes held; above them they are read again.
        HELD_MAX = 64 << 20
        # Seconds until the hub is offered what it did not take.
        RETRY = 0.05
        # How often a channel is read for a message that does not follow.
        READS = 2

        # @return [Integer] the highest id that is known
        attr_reader :seen

        # @param keys [Scripts::Keys]
        # @param outlet [#item, #give] the hub: false when it does not take it
        def initialize(keys, outlet)
          @keys = keys
          @outlet = outlet
          @tracks = {}
          @seen = 0
          @filled = []
          @held = []
          @copies = {}
          forget_link
        end

        # @param channel [String]
        # @param after [Integer] 1: from now on
        # @return [void]
        def follow(channel, after)
          return if @tracks[channel]

          track = @tracks[channel] = Track.new(channel, after > 1 ? after : nil, nil, nil, nil, 0)
          after > 1 ? see(after) : @unmarked << track
          want(channel) if after > 1 && @is_whole
        end

        # @param channel [String]
        # @return [void]
        def forget(channel)
          track = @tracks.delete(channel) or return
          @unmarked.delete(track)
          @wanted.delete(channel)
          [@copies, @copying].each { |each| each.delete(channel) }
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
          follow(channel, 1)
          @copies[channel] = number
        end

        # ---- the connection ----

        # Nothing is live until {#connected}.
        # @return [void]
        def forget_link
          @is_whole = @is_marking = @is_marked = @is_settling = false
          @wanted = {}
          @reading = {}
          @copying&.each_key { |channel| @copies[channel] = 0 }
          @copying = {}
          @filled.clear
          @unmarked = @tracks.each_value.reject(&:last)
          @tracks.each_value do |track|
            track.recent = track.is_fresh = nil
            track.tries = 0
          end
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
          @tracks.each_value { |track| want(track.channel) if track.last && !track.is_fresh }
          settle if @wanted.empty? && @reading.empty?
        end

        # Whether SUBSCRIBE may be sent: what comes after the clock that was read is owed.
        # @return [Boolean]
        def marked?
          @is_marked = false if @unmarked.empty?
          return true if @unmarked.empty?
          return false unless @is_marked

          @unmarked.each do |track|
            track.last ||= @mark
            track.is_fresh = true
          end
          @unmarked.clear
          @is_marked = false
          true
        end

        # Asks what is to be asked.
        # @param commands [Link]
        # @param listener [Link, nil]
        # @yieldparam number [Integer] whether this subscription is confirmed
        # @yieldreturn [Boolean]
        # @return [void]
        def ask(commands, listener, &)
          @listener = listener
          ask_clock(commands) if @unmarked.any? && !@is_marking && !@is_marked
          return unless listener&.ready?

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

          item = Item.new(channel, head[1].to_i, head[2].to_i, head[3].to_i, head[4], text)
          see(item.id)
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

        # ---- the clock ----

        def ask_clock(commands)
          @is_marking = true
          ask_script(commands, Scripts::CLOCK, @keys.times, [@seen]) do |reply|
            @mark = reply.to_i
            see(@mark)
            @is_marking = false
            @is_marked = true
          end
        end

        def ask_script(commands, script, keys, arguments)
          commands.ask(Scripts.call(script, keys, arguments)) do |reply|
            raise Redis::Link::Refused, reply.message if reply.is_a?(Redis::Replies::Refusal)

            yield reply
          end
        end

        def read(commands, track, after, which, &block)
          ask_script(commands, Scripts::READ, [*@keys.times, *@keys.of(track.channel)], [@seen, after, which], &block)
        end

        # ---- what is missing ----

        def want(channel)
          @wanted[channel] = @tracks[channel].last if @tracks[channel]&.last
          true
        end

        def held?
          !@is_whole || @is_settling || @is_blocked || @wanted.any? || @reading.any? || @held.any?
        end

        def hold(item)
          @held << item
          return if (@held_bytes = (@held_bytes || 0) + (item.text&.bytesize || 0)) < HELD_MAX

          @held.each { |held| want(held.channel) }
          @held.clear
          @held_bytes = 0
        end

        def ask_missing(commands)
          return unless @is_whole

          ask_next(commands, *@wanted.shift) while @wanted.any? && commands.pending < Redis::Pump::WINDOW
          settle if @reading.empty? && (@held.any? || @filled.any?) && !@is_settling && !@is_blocked
        end

        def ask_next(commands, channel, after)
          track = @tracks[channel] or return
          @reading[channel] = true
          read(commands, track, after, "next") { |reply| filled(track, after, reply) }
        end

        def filled(track, after, reply)
          began, clock, _now, last, more, found = reply
          see(clock.to_i)
          @reading.delete(track.channel)
          whole = found.reject { |id, *| id.to_i < began.to_i } # what is older is part of the gap
          note_hole(track.channel, after, began.to_i, whole, last.to_i)
          whole.each do |id, previous, kind, text|
            @filled << Item.new(track.channel, began.to_i, previous.to_i, id.to_i, kind, text)
          end
          @wanted[track.channel] = found.last.first.to_i if more == 1
          settle if @reading.empty? && @wanted.empty?
        end

        # The stream has lost something: all of it, its oldest messages, or some that somebody deleted.
        def note_hole(channel, after, began, found, last)
          floor = began > after ? began : 0
          at = after
          found.each do |id, previous, *|
            floor = [floor, previous.to_i].max if previous.to_i > at
            at = id.to_i
          end
          floor = [floor, last].max if found.empty? && last > after
          @filled << Item.new(channel, began, 0, floor) if floor.positive?
        end

        # What was published before is here when the answer is.
        def settle
          return if @is_settling

          @is_settling = true
          @listener.ask(["PING"]) do
            @is_settling = false
            release if @wanted.empty? && @reading.empty?
          end
        end

        def release
          items = (@filled + @held).each_with_index.sort_by { |item, index| [item.id, index] }.map(&:first)
          @filled.clear
          @held.clear
          @held_bytes = 0
          @is_blocked = false
          items.shift while items.any? && deliver(items.first)
          items.each { |item| hold(item) }
        end

        # ---- delivering ----

        # @return [Boolean] false when it has to wait
        def deliver(item)
          track = @tracks[item.channel]
          return @outlet.item(item) || true unless track&.last
          return true if item.id <= track.last
          return false unless item.text.nil? || follows?(track, item) || goes_on?(track, item)

          @is_blocked = !@outlet.item(item)
          return false if @is_blocked

          track.last = item.id
          track.tries = 0
          return true unless item.text

          track.newest = item.id
          track.recent&.push(item)
          true
        end

        def follows?(track, item)
          item.previous <= track.last && item.began <= track.last
        end

        # What is missing before it is read. When that did not help, it is nowhere any more: Redis was emptied, or went
        # back to an older state.
        def goes_on?(track, item)
          track.tries += 1
          return !want(track.channel) if track.tries <= READS

          deliver(Item.new(item.channel, item.began, 0, [item.previous, item.began].max))
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
            read(commands, track, 0, "newest") { |reply| read_copy(track, reply) }
          end
        end

        # What was published before it was read has been delivered when the answer to PING is here.
        def read_copy(track, reply)
          @listener.ask(["PING"]) do
            next unless @tracks[track.channel].equal?(track)

            @copying.delete(track.channel)
            held? || lacks?(track, reply.last) ? ask_again(track) : give_copy(track, reply)
          end
        end

        # A message between the clock that was read and SUBSCRIBE has not come by itself: it is read first.
        def lacks?(track, found)
          found.any? && found.first.first.to_i > track.last && want(track.channel)
        end

        def give_copy(track, reply)
          began, clock, now, last, _more, found = reply
          items = found.reverse.map do |id, previous, kind, text|
            Item.new(track.channel, 0, previous.to_i, id.to_i, kind, text)
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

        # From the last hole on.
        def whole_part(items, began, last)
          items = items.select { |item| item.id > began }
          floor = items.empty? ? [began, last].max : [began, items.first.previous].max
          from = 0
          items.each_cons(2).with_index do |(one, two), index|
            next unless two.previous > one.id

            floor = two.previous
            from = index + 1
          end
          [floor, items.drop(from)]
        end
      end
    end
  end
end
