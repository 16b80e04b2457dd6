# frozen_string_literal: true

# A message as the stream has it, and who reads them in order. Used by stream.rb and copies.rb.
# SPDX-License-Identifier: MIT

require "securerandom"
require "rondo/pubsub/nats/answers"
require "rondo/pubsub/nats/wire"
require "rondo/pubsub/queued/kept"

module Rondo
  module PubSub
    class Nats < Engine
      # The id is the time that the stream gave the message, in microseconds, but above all ids that its publisher knew.
      # So it comes from the message alone, and every server finds the same.
      # @api private
      Stored = Struct.new(:channel, :id, :sequence, :delivered, :pending, :kind, :text, :writer, :number, :time_us) do
        # @return [Queued::Item]
        def item
          Queued::Item.new(channel, 0, 0, id, kind, text.dup)
        end

        # @return [Integer] that it takes here
        def bytes
          text.bytesize + self.class::OWN
        end

        # @param message [Message]
        # @param names [Names]
        # @return [Stored, nil] nil: it is not of a stream
        def self.of(message, names)
          numbers = numbers_of(message.reply.to_s) or return
          place, text = message.headers[self::HEADER].to_s.split, message.data
          time = numbers[3] / 1000
          id = [time, [place[0].to_i, time + self::AHEAD].min + 1].max
          new(names.channel(message.subject), id, numbers[1], numbers[2], numbers[4], kind_of(place[1], text),
              text, place[2], place[3].to_i, time)
        end

        # @return [Array<Integer>, nil] deliveries, number in the stream, of the consumer, time, how many follow
        def self.numbers_of(reply)
          words = reply.split(".")
          return unless words.shift(2) == %w[$JS ACK] && words.size >= 7

          (words.size == 7 ? words.drop(2) : words.drop(4)).map(&:to_i)
        end
        private_class_method :numbers_of

        # What others publish has no mark, or a wrong one.
        def self.kind_of(kind, text)
          kind != "b" && Queued.text(text).encoding == Encoding::UTF_8 ? "t" : "b"
        end
        private_class_method :kind_of
      end
      # Bytes of one without a text.
      Stored::OWN = 256
      Stored::HEADER = "Rondo-Of"
      # Microseconds that the clock of a NATS may go back, or that somebody may pretend.
      Stored::AHEAD = 86_400_000_000

      # Of one connection. It acknowledges nothing; whoever misses a number makes a new one.
      # @api private
      class Consumer
        # Seconds between signs of life, and without one.
        HEARTBEAT = 1
        SILENCE = 5

        @count = 0
        class << self
          # @return [Integer]
          def next_number
            @count += 1
          end
        end

        # @return [String] of its subscription
        attr_reader :name

        # @param stream [String]
        # @param requests [Requests]
        # @param at [Integer] number of the message with which it begins; if that is gone, the next one
        # @param from_us [Integer, nil] instead of it, microseconds; earlier ones may come, too
        # @param is_in_memory [Boolean] whether NATS has the stream there
        # @yieldparam name [String]
        # @yieldparam pending [Integer] how many messages it will have at once
        def initialize(stream, requests, at:, from_us: nil, is_in_memory: false)
          @requests = requests
          @name = "d#{Consumer.next_number}"
          @delivered = 0
          @heard_at = now
          config = { deliver_subject: requests.open(@name), ack_policy: "none", replay_policy: "instant",
                     flow_control: true, idle_heartbeat: HEARTBEAT * 1_000_000_000, mem_storage: true,
                     num_replicas: 1, max_deliver: 1, **place(at, from_us, is_in_memory) }
          requests.ask("$JS.API.CONSUMER.CREATE.#{stream}", { stream_name: stream, config: config }) do |answer|
            raise Link::Refused, Answers.text_of(answer["error"]) if answer["error"]

            # Messages may have come before the answer, which counts those that had not been sent then.
            yield @name, answer["num_pending"].to_i + @delivered
          end
        end

        # The server sees that nobody listens.
        # @return [void]
        def close
          @requests.shut(@name)
        end

        # @param stored [Stored]
        # @return [Boolean] whether none is missing before it
        def next?(stored)
          @heard_at = now
          @delivered += 1
          stored.delivered == @delivered
        end

        # @param message [Message] of the server itself
        # @param link [Link] that answers it
        # @return [Boolean] false when a message is missing
        def control(message, link)
          @heard_at = now
          answer = message.reply || message.headers["Nats-Consumer-Stalled"]
          link.push(Wire.publish(answer, "")) if answer
          last = message.headers["Nats-Last-Consumer"]
          message.status == 100 && (last.nil? || last.to_i == @delivered)
        end

        # @param message [Message] of the server itself
        # @return [Integer, nil] the number in the stream up to which all has come, if it says so
        def upto(message)
          message.headers["Nats-Last-Stream"]&.to_i unless message.headers["Nats-Consumer-Stalled"]
        end

        # @return [Boolean] it is gone
        def silent?
          patience.zero?
        end

        # @return [Float] seconds
        def patience
          [@heard_at + SILENCE - now, 0].max
        end

        private

        # A NATS (seen with 2.9.10) crashes when it looks for a time in memory where messages are removed.
        def place(number, from_us, is_in_memory)
          return { deliver_policy: "by_start_sequence", opt_start_seq: [number, 1].max } unless from_us
          return { deliver_policy: "all" } if is_in_memory

          time = Time.at(0, from_us, :usec).utc
          { deliver_policy: "by_start_time", opt_start_time: time.strftime("%Y-%m-%dT%H:%M:%S.%6NZ") }
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
