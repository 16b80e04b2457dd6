# frozen_string_literal: true

# Copies of the newest messages of channels, for the hub: each is read once, by a consumer of its own, in pages.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/nats/answers"
require "rondo/pubsub/nats/consumer"
require "rondo/pubsub/nats/setup"
require "rondo/pubsub/queued/outage"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      class Copies
        # Copies that are read at once.
        MOST = 16
        # The same of a stream with replicas, whose leader answers with whole messages.
        MOST_ASKED = 4
        NANOSECONDS = 1_000_000_000
        PAGE = 256
        PAGE_BYTES = 4 << 20
        # Bytes of a copy, and of what comes while it is read; older messages are not in it.
        BYTES = 16 << 20
        # Of all that are read, with what comes meanwhile. The oldest one goes on, others come later.
        TOTAL = 64 << 20
        # Seconds that the server keeps a consumer of which nobody hears.
        IDLE = 10
        # Seconds that the server waits for the messages of a page.
        EXPIRES = 2
        # Seconds without a message until a copy is begun anew.
        SILENCE = 5
        TOO_LONG = /MaxBytes/i
        EXPIRED = 408

        # One that is read.
        # @!attribute recent [Array<Array(Queued::Item, Integer)>] messages that came meanwhile, and their bytes
        # @!attribute recent_bytes [Integer]
        # @!attribute floor [Integer] id of the last one of them for which there was no room
        # @!attribute left [Integer] messages of the page that may still come
        # @!attribute asked_at [Float] when the page was asked for
        # @!attribute heard_at [Float]
        # @!attribute oldest [Integer, nil] number of the oldest message of the channel, where a replica may lack it
        # @!attribute newest [Integer, nil] of the newest one
        # @!attribute ahead_us [Integer] how far the clock of NATS is ahead of ours, which only measures durations
        Reading = Struct.new(:name, :channel, :items, :bytes, :recent, :recent_bytes, :floor, :left, :consumer, :is_cut,
                             :asked_at, :heard_at, :oldest, :newest, :ahead_us)

        # @param names [Names]
        # @param stream [Stream]
        # @param clock [#call] seconds
        def initialize(names, stream, clock: -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) })
          @names = names
          @stream = stream
          @clock = clock
          @wanted = {}
          @reading = {}
          @count = @attempts = 0
          @next_at = 0.0
        end

        # @return [void]
        def want(channel)
          @wanted[channel] = true
        end

        # @return [void]
        def forget(channel)
          @wanted.delete(channel)
          gone = @reading.select { |_, each| each.channel == channel }
          gone.each_key { |name| leave(name) }
        end

        # @return [void]
        def forget_link
          @reading.each_value { |each| @wanted[each.channel] = true }
          @reading.clear
        end

        # @param requests [Requests]
        # @return [void]
        def ask(requests)
          @requests = requests
          @reading.values.each { |each| anew(each) if patience(each).zero? } # rubocop:disable Style/HashEachMethods
          return if @clock.call < @next_at

          while @wanted.any? && @reading.size < most
            channel, = @wanted.shift
            start(channel) if @stream.track(channel)
          end
        end

        # @return [Float, nil] seconds until {#ask} is to be called again
        def pause
          waits = @reading.each_value.map { |each| patience(each) }
          waits << [@next_at - @clock.call, 0].max if @wanted.any? && @reading.size < most
          waits.min
        end

        # A message was delivered. The copy of its channel, which is read now, may lack it.
        # @param item [Queued::Item]
        # @param bytes [Integer]
        # @return [void]
        def came(item, bytes)
          return if @reading.empty?

          reading = @reading.each_value.find { |each| each.channel == item.channel } or return
          reading.recent << [item, bytes]
          reading.recent_bytes += bytes
          cut_recent(reading) while reading.recent_bytes > BYTES && reading.recent.size > 1
          anew(reading) if too_much?(reading)
        end

        # @param message [Message]
        # @return [void]
        def take(message)
          reading = @reading[message.sid] or return
          return end_page(reading, message) if message.status

          stored = Stored.of(message, @names) or return
          reading.heard_at = @clock.call
          add(reading, stored)
          return anew(reading) if too_much?(reading)

          return finish(reading) if stored.pending.zero? && stored.sequence >= reading.newest.to_i

          read_page(reading) if (reading.left -= 1).zero?
        end

        private

        def most
          @stream.replicas? ? MOST_ASKED : MOST
        end

        def start(channel)
          name = "c#{@count += 1}"
          reading = @reading[name] = Reading.new(name, channel, [], 0, [], 0, 0, 0)
          reading.asked_at = reading.heard_at = @clock.call
          @requests.open(name)
          return make(reading) unless @stream.replicas?

          @stream.leader.ends(channel) do |oldest, newest|
            reading.oldest, reading.newest = oldest, newest
            make(reading) if @reading[name]
          end
        end

        def make(reading)
          config = { filter_subject: @names.kept(reading.channel), deliver_policy: "all", ack_policy: "none",
                     replay_policy: "instant", inactive_threshold: IDLE * NANOSECONDS, mem_storage: true,
                     num_replicas: 1, max_deliver: 1 }
          words = { stream_name: @names.stream, config: config }
          @requests.ask("$JS.API.CONSUMER.CREATE.#{@names.stream}", words) { |answer| begun(reading, answer) }
        end

        def begun(reading, answer)
          return unless @reading[reading.name]
          return unable(reading, answer["error"]) if answer["error"]

          reading.consumer = answer["name"]
          reading.ahead_us = Answers.time(answer["created"]) - clock_us
          answer["num_pending"].to_i.zero? && reading.newest.nil? ? finish(reading) : read_page(reading)
        end

        # Too many consumers, or none are allowed.
        def unable(reading, error)
          text = Answers.text_of(error)
          raise Link::Refused, text if error["code"].to_i >= 500 || error["err_code"] == Setup::NO_STREAM

          @stream.refused(text)
          anew(reading)
        end

        # A message that is longer than a page comes alone.
        def read_page(reading, count = PAGE)
          reading.left = count
          reading.asked_at = @clock.call
          words = { batch: count, expires: EXPIRES * NANOSECONDS }
          words[:max_bytes] = PAGE_BYTES if count > 1
          subject = "$JS.API.CONSUMER.MSG.NEXT.#{@names.stream}.#{reading.consumer}"
          @requests.send_to(subject, JSON.generate(words), reading.name)
        end

        # The next message does not fit into the page, or none has come in time; else the consumer is gone.
        def end_page(reading, message)
          if TOO_LONG.match?(message.headers[""]) && reading.left > 1
            read_page(reading, reading.left == PAGE ? 1 : PAGE)
          elsif message.status == EXPIRED && @clock.call - reading.asked_at > EXPIRES / 2.0
            read_page(reading)
          else
            anew(reading)
          end
        end

        def anew(reading)
          leave(reading.name)
          later(reading.channel)
        end

        # The hub does not take it now, or nobody answers.
        def later(channel)
          want(channel)
          @next_at = @clock.call + Queued::Outage.delay(@attempts)
          @attempts += 1
        end

        # The server removes the consumer by itself.
        def leave(name)
          @requests.shut(name) if @reading.delete(name)
        end

        # @return [Boolean] whether this one must wait for others
        def too_much?(reading)
          !reading.equal?(@reading.each_value.first) &&
            @reading.each_value.sum { |each| each.bytes + each.recent_bytes } > TOTAL
        end

        # What is older is missing then, too.
        def cut_recent(reading)
          item, bytes = reading.recent.shift
          reading.recent_bytes -= bytes
          reading.floor = item.id
          reading.items.clear
          reading.bytes = 0
        end

        # @return [Float] seconds
        def patience(reading)
          [reading.heard_at + SILENCE - @clock.call, 0].max
        end

        def add(reading, stored)
          return if stored.id <= reading.floor

          reading.items << stored
          reading.bytes += stored.bytes
          while reading.bytes > BYTES && reading.items.size > 1
            reading.bytes -= reading.items.shift.bytes
            reading.is_cut = true
          end
        end

        # The state is asked last: what it says to be lost may have been read, never the other way round.
        def finish(reading)
          @requests.shut(reading.name)
          reading.heard_at = @clock.call
          @requests.ask("$JS.API.CONSUMER.DELETE.#{@names.stream}.#{reading.consumer}") { |_| nil }
          @stream.info do |answer|
            next unless @reading.delete(reading.name)
            raise Link::Refused, Answers.text_of(answer["error"]) if answer["error"]

            @stream.live? ? give(reading, answer) : want(reading.channel)
          end
        end

        def give(reading, answer)
          track = @stream.track(reading.channel) or return
          items = whole(reading.items).select { |stored| stored.id.between?(reading.floor + 1, track.last) }.map(&:item)
          newest = items.last&.id || 0
          items.concat(reading.recent.map(&:first).select { |item| item.id > newest })
          now_us = clock_us + reading.ahead_us
          given = @stream.give(reading.channel, floor_of(reading, answer["state"], now_us), now_us, @stream.top, items)
          given ? @attempts = 0 : later(reading.channel)
        end

        def clock_us
          (@clock.call * 1_000_000).to_i
        end

        # Void ones do not ascend; see Stream#take_live.
        def whole(stored)
          top = 0
          stored.select { |each| each.id > top && (top = each.id) }
        end

        # Above it nothing is missing.
        def floor_of(reading, state, now_us)
          first = reading.items.first
          is_full = reading.is_cut || reading.items.size >= @stream.messages || lacks_oldest?(reading)
          age_us = @stream.age_us
          [@stream.began,
           @stream.floor,
           reading.floor,
           is_full && first ? first.id - 1 : 0,
           age_us.positive? ? now_us - age_us : 0,
           gone_before(state)].max
        end

        # Or a limit has just removed it.
        def lacks_oldest?(reading)
          reading.oldest && reading.items.any? && reading.items.first.sequence > reading.oldest
        end

        # What is before the first message of the stream may be lost by another limit, or by hand.
        def gone_before(state)
          return 0 if state["first_seq"].to_i <= 1

          state["messages"].to_i.zero? ? @stream.top : Answers.time(state["first_ts"]) - 1
        end
      end
    end
  end
end
