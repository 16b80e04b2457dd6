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
        # @return [Redis::Place]
        attr_writer :place
        # @return [Scripts::Keys]
        attr_writer :keys

        # @see Redis::Subscriptions#send_to
        def send_to(link)
          is_new = !@link.equal?(link)
          link.ask(["SSUBSCRIBE", @keys.anchor]) { |reply| Redis::Link.check(reply) } if is_new && @place.sharded?
          super
          link.ask(["PING"]) { on_connected.call } if is_new
        end

        # @see Redis::Subscriptions#dispatch
        def dispatch(reply)
          case reply
          in ["smessage", String => name, String => message] then deliver_message(@keys.from_shard(name), message)
          in ["sunsubscribe", *] then return left(reply[1])
          else return super
          end
          true
        end

        # @see Redis::Subscriptions#forget_link
        def forget_link
          super
          @leaving = 0
        end

        private

        # An answer, or Redis says by itself that this node does not have the slot any more.
        def left(name)
          raise Redis::Link::Broken, "the slot has moved" if @leaving.zero? || name == @keys.anchor

          @leaving -= 1
          false
        end

        # Without shards a channel has one name.
        def ask(wanted, channel, kind)
          return super unless kind == :shard
          return unless @place.sharded?

          @leaving += 1 unless wanted
          super
        end
      end

      # @api private
      class StreamPump < Redis::Pump
        # XTRIM has MINID since then.
        OLDEST = [6, 2].freeze

        # @return [Tracks]
        attr_writer :tracks

        # @param publisher [Publisher]
        def publisher=(publisher)
          @publisher = publisher
          @returned = publisher.returned
        end

        # @see Redis::Pump#unanswered
        def unanswered
          @returned.among(super)
        end

        private

        def open_links
          return super if @commands

          super
          @unchecked = 0
          ask_first(%w[INFO server]) { |reply| check_version(reply) }
          Scripts::ALL.each { |script| ask_first(["SCRIPT", "LOAD", script]) { |reply| Redis::Link.check(reply) } }
          @mutex.synchronize { @tracks.check(@commands, @publisher.acknowledged) }
        end

        def ask_first(words)
          @unchecked += 1
          @commands.ask(words) do |reply|
            yield reply
            @unchecked -= 1
          end
        end

        def check_version(reply)
          version = reply.to_s[/^redis_version:(\S+)/, 1] or return
          return unless (version.split(".").map(&:to_i) <=> OLDEST).negative?

          raise Redis::Link::Refused, "Redis #{version} is too old: streams need #{OLDEST.join(".")} or newer"
        end

        # A Redis that cannot keep streams is not there.
        def whole?
          super && @unchecked.zero?
        end

        def give_up_links(...)
          super
          @mutex.synchronize do
            @tracks.forget_link
            @publisher.forget_link
          end
        end

        # Streams are read before what is published leaves.
        def feed_links
          look_elsewhere
          @mutex.synchronize do
            if @commands&.ready?
              @tracks.ask(@commands, @listener) { |number| @subscriptions.reached?(number) }
              feed_commands
            end
            @subscriptions.send_to(@listener) if @listener&.ready? && @listener.unsent_bytes < WINDOW_BYTES
          end
        end

        # A master that is cut off from its replicas may have been replaced.
        def look_elsewhere
          return unless @commands && room? && @mutex.synchronize { @returned.unsure? } && @place.moved?

          raise Redis::Link::Broken, "another node is the master now"
        end

        # Messages that Redis does not take now, and those behind them, let others pass.
        def next_entry
          @returned.next || loop do
            entry = super or return
            return entry if !entry.is_a?(Kept) || @returned.pass?(entry)
          end
        end

        def reached?(number)
          super && @tracks.begun?(number)
        end

        def send_entry(entry)
          return super unless entry.is_a?(Kept)

          @commands.ask_encoded(@publisher.encode(entry, @place.sharded?), entry) { |reply| written(entry, reply) }
        end

        # What Redis does not write now goes first when it does.
        def written(entry, reply)
          return if reply.is_a?(Redis::Replies::Refusal) && takes_back?(entry, reply.message)

          @mutex.synchronize do
            next @publisher.answered(entry) unless reply.is_a?(Integer)

            @publisher.written(entry, reply)
            @tracks.see(reply)
          end
          answered(entry, reply)
        end

        def takes_back?(entry, reason)
          refuse(entry, reason) if Publisher::ELSEWHERE.match?(reason) || @place.elsewhere?(reason)
          return false unless Returned.takes?(reason)

          @mutex.synchronize { @publisher.take_back(entry, reason) }
          true
        end

        def patience(links)
          pauses = @mutex.synchronize { [@tracks.pause, (@returned.pause if @commands && room?)] }
          [super, *pauses].compact.min
        end
      end
    end
  end
end
