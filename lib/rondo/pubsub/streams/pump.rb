# frozen_string_literal: true

# The thread of the engine with streams: the pump of Redis, which also reads streams and sends messages that Redis
# writes once.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/redis/pump"
require "rondo/pubsub/streams/publisher"
require "rondo/pubsub/streams/tracks"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # The subscriptions, and when a new connection has confirmed them all.
      # @api private
      class Subscribed < Redis::Subscriptions
        # @return [#call]
        attr_accessor :on_connected

        # @see Redis::Subscriptions#send_to
        def send_to(link)
          is_new = !@link.equal?(link)
          super
          link.ask(["PING"]) { on_connected.call } if is_new
        end
      end

      # @api private
      class StreamPump < Redis::Pump
        # XTRIM has MINID since then.
        OLDEST = [6, 2].freeze

        # @return [Tracks]
        attr_writer :tracks
        # @return [Publisher]
        attr_writer :publisher

        private

        def open_links
          return super if @commands

          super
          @commands.ask(%w[INFO server]) { |reply| check_version(reply) }
          Scripts::ALL.each do |script|
            @commands.ask(["SCRIPT", "LOAD", script]) { |reply| check(reply) }
          end
        end

        def check_version(reply)
          version = reply.to_s[/^redis_version:(\S+)/, 1] or return
          return unless (version.split(".").map(&:to_i) <=> OLDEST).negative?

          raise Redis::Link::Refused, "Redis #{version} is too old: streams need #{OLDEST.join(".")} or newer"
        end

        def check(reply)
          raise Redis::Link::Refused, reply.message if reply.is_a?(Redis::Replies::Refusal)
        end

        def give_up_links(reason, is_answer = false) # rubocop:disable Style/OptionalBooleanParameter
          super
          @mutex.synchronize do
            @outbox.put_back(@refused) if @refused
            @refused = nil
            @tracks.forget_link
            @publisher.forget_link
          end
        end

        # Streams are read before what is published leaves.
        def feed_links
          @mutex.synchronize do
            if @commands&.ready?
              @tracks.ask(@commands, @listener) { |number| @subscriptions.reached?(number) }
              feed_commands
            end
            @subscriptions.send_to(@listener) if @listener&.ready? && @listener.unsent_bytes < WINDOW_BYTES
          end
        end

        def reached?(number)
          super && @tracks.begun?(number)
        end

        def send_entry(entry)
          return super unless entry.is_a?(Kept)

          @commands.ask_encoded(@publisher.encode(entry), entry) { |reply| written(entry, reply) }
        end

        # What Redis does not write now goes first when it does.
        def written(entry, reply)
          if reply.is_a?(Redis::Replies::Refusal) && Publisher::LATER.match?(reply.message)
            @refused = entry
            raise Redis::Link::Refused, reply.message
          end

          @mutex.synchronize do
            @publisher.written(entry) unless reply.is_a?(Redis::Replies::Refusal)
            @tracks.see(reply) if reply.is_a?(Integer)
          end
          answered(entry, reply)
        end

        def patience(links)
          [super, @mutex.synchronize { @tracks.pause }].compact.min
        end
      end
    end
  end
end
