# frozen_string_literal: true

# Copies of the newest messages of channels, for the hub: each is read once, by a consumer of its own, in pages.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/nats/consumer"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      class Copies
        # At once.
        MOST = 16
        PAGE = 256
        PAGE_BYTES = 4 << 20
        # Bytes of a copy; older messages are not in it.
        BYTES = 16 << 20
        # Nanoseconds that the server keeps a consumer of which nobody hears.
        IDLE = 10_000_000_000

        # One that is read.
        Reading = Struct.new(:name, :channel, :consumer, :items, :bytes, :left, :is_cut)

        # @param names [Names]
        # @param stream [Stream]
        def initialize(names, stream)
          @names = names
          @stream = stream
          @wanted = {}
          @reading = {}
          @count = 0
        end

        # @return [void]
        def want(channel)
          @wanted[channel] = true
        end

        # @return [void]
        def forget(channel)
          @wanted.delete(channel)
          @reading.delete_if { |_, each| each.channel == channel }
        end

        # @return [void]
        def forget_link
          @reading.each_value do |each|
            @wanted[each.channel] = true
            @stream.track(each.channel)&.recent = nil
          end
          @reading.clear
        end

        # @param requests [Requests]
        # @return [void]
        def ask(requests)
          @requests = requests
          while @wanted.any? && @reading.size < MOST
            channel, = @wanted.shift
            start(channel) if @stream.track(channel)
          end
        end

        # @param message [Message]
        # @return [void]
        def take(message)
          reading = @reading[message.sid] or return
          return read_page(reading) if message.status

          stored = Stored.of(message, @names) or return
          add(reading, stored)
          return finish(reading) if stored.pending.zero?

          read_page(reading) if (reading.left -= 1).zero?
        end

        private

        def start(channel)
          name = "c#{@count += 1}"
          reading = @reading[name] = Reading.new(name, channel, nil, [], 0, 0)
          @requests.open(name)
          @stream.track(channel).recent = []
          config = { filter_subject: @names.kept(channel), deliver_policy: "all", ack_policy: "none",
                     replay_policy: "instant", inactive_threshold: IDLE, mem_storage: true, num_replicas: 1,
                     max_deliver: 1 }
          words = { stream_name: @names.stream, config: config }
          @requests.ask("$JS.API.CONSUMER.CREATE.#{@names.stream}", words) { |answer| begun(reading, answer) }
        end

        def begun(reading, answer)
          raise Link::Refused, Stream.text_of(answer["error"]) if answer["error"]
          return unless @reading[reading.name]

          reading.consumer = answer["name"]
          answer["num_pending"].to_i.zero? ? finish(reading) : read_page(reading)
        end

        def read_page(reading)
          reading.left = PAGE
          words = JSON.generate(batch: PAGE, max_bytes: PAGE_BYTES, expires: 2_000_000_000)
          subject = "$JS.API.CONSUMER.MSG.NEXT.#{@names.stream}.#{reading.consumer}"
          @requests.send_to(subject, words, reading.name)
        end

        def add(reading, stored)
          reading.items << stored
          reading.bytes += stored.text.bytesize
          while reading.bytes > BYTES && reading.items.size > 1
            reading.bytes -= reading.items.shift.text.bytesize
            reading.is_cut = true
          end
        end

        # The state is asked last: what it says to be lost may have been read, never the other way round.
        def finish(reading)
          @requests.shut(reading.name)
          @requests.ask("$JS.API.CONSUMER.DELETE.#{@names.stream}.#{reading.consumer}") { |_| nil }
          @stream.info do |answer|
            next unless @reading.delete(reading.name)
            raise Link::Refused, Stream.text_of(answer["error"]) if answer["error"]

            @stream.live? ? give(reading, answer) : want_again(reading)
          end
        end

        def want_again(reading)
          @stream.track(reading.channel)&.recent = nil
          want(reading.channel)
        end

        def give(reading, answer)
          track = @stream.track(reading.channel) or return
          items = whole(reading.items).select { |stored| stored.id <= track.last }.map(&:item)
          newest = items.last&.id || 0
          items.concat(track.recent.to_a.select { |item| item.id > newest })
          track.recent = nil
          now_us = (Time.now.to_f * 1_000_000).to_i
          @stream.give(reading.channel, floor_of(reading, answer["state"], now_us), now_us, @stream.top, items) or
            want(reading.channel)
        end

        # Void ones do not ascend; see Stream#take_live.
        def whole(stored)
          top = 0
          stored.select { |each| each.id > top && (top = each.id) }
        end

        # Above it nothing is missing.
        def floor_of(reading, state, now_us)
          first = reading.items.first
          is_full = reading.is_cut || reading.items.size >= @stream.messages
          age_us = @stream.age_us
          [@stream.began,
           is_full && first ? first.id - 1 : 0,
           age_us.positive? ? now_us - age_us : 0,
           gone_before(state)].max
        end

        # What is before the first message of the stream may be lost by another limit, or by hand.
        def gone_before(state)
          return 0 if state["first_seq"].to_i <= 1

          state["messages"].to_i.zero? ? @stream.top : Stream.time(state["first_ts"]) - 1
        end
      end
    end
  end
end
