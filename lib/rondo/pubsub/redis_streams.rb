# frozen_string_literal: true

# Channels with a history in Redis Streams: ids that are the same on all machines, messages that are written once, gaps
# that are filled or told. Channels without a history go as with the engine for Redis (redis.rb).
# SPDX-License-Identifier: MIT

require "rondo/pubsub/redis"
require "rondo/pubsub/relay_frames"

module Rondo
  module PubSub
    # An engine of a cluster, in its master; the setting `redis_streams` makes it. In a program that is no server, such
    # as a job, it publishes on channels with a rule of {PubSub.history}: Redis keeps the message, and `confirm:` gives
    # its id. Two connections.
    # @example
    #   Rondo::PubSub.history("orders:*", match: :redis, size: 100)
    #   Rondo::PubSub.default = Rondo::PubSub::RedisStreams.new("redis://localhost:6379")
    #   Rondo.publish("orders:7", "paid", confirm: 5) # => 1785312000000000
    class RedisStreams < Redis
      # Of names in Redis, and of patterns there.
      # @api private
      PREFIX = /\A[A-Za-z0-9_.-]{1,64}\z/

      # @param url [String] as {Redis#initialize}
      # @param prefix [String, nil] of all names in Redis; each application in one Redis has its own
      # @param options [Hash] as {Redis#initialize}
      # @raise [ConfigurationError]
      def initialize(url, prefix: nil, **options)
        require "rondo/pubsub/redis/link"
        require "rondo/pubsub/streams/pump"
        unless prefix.nil? || PREFIX.match?(prefix)
          raise ConfigurationError, "a prefix in Redis has 1 to 64 letters, digits, dots, dashes and underlines, " \
                                    "not #{prefix.inspect}"
        end
        @keys = Scripts::Keys.new(prefix)
        @tag = Scripts::Keys.tag(prefix)
        super(url, **options)
      end

      # @api private
      # @return [Boolean] whether messages have ids of the engine
      def keeps?
        true
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @param after [Integer] 0: no history; 1: from now on; else what came after this id
      # @return [void]
      def subscribe(channel, is_pattern, after = 0)
        queue do
          @subscriptions.add(@keys.channel(channel), is_pattern ? true : false)
          next unless after.positive?

          @subscriptions.add(@keys.shard(channel), :shard) if @address.kind == :cluster
          @tracks.follow(channel, after, @subscriptions.asked)
        end
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def unsubscribe(channel, is_pattern)
        queue do
          @subscriptions.remove(@keys.channel(channel), is_pattern ? true : false)
          @subscriptions.remove(@keys.shard(channel), :shard) unless is_pattern
          @tracks.forget(channel) unless is_pattern
        end
      end

      # @param channel [String]
      # @param message [String]
      # @param terms [Queued::Terms, nil] of its history, as the hub says; without a hub the rules of this process hold
      # @yieldparam result [Integer, Boolean] its id, or as {Redis#publish}
      # @return [Boolean] as {Redis#publish}
      def publish(channel, message, terms = nil, &block)
        is_passing = passing?(channel)
        return false if is_passing && away?

        terms ||= terms_of(channel) unless @hub_link
        return push_kept(channel, message, terms, block) if terms

        # What looks like a message of a stream is packed, so that nobody can pretend.
        message = "\0rondo 0 0 0 #{kind_of(message)}\n".b << message.b if message.b.start_with?(Tracks::MAGIC)
        push(["PUBLISH", @keys.channel(channel), message], true, block && told_by(block), is_passing: is_passing)
      end

      # Of the engine before a restart.
      # @api private
      # @param channel [String]
      # @param message [String]
      # @param terms [Queued::Terms, nil]
      # @param number [Integer] that it had there, so that it is written once; 0: it had none
      # @return [Boolean] as {#publish}
      def publish_again(channel, message, terms, number)
        return push_kept(channel, message, terms, nil, number) if terms && @publisher.own?(number)

        # Without a number it had no history. A new number before the others would stand for them.
        publish(channel, message, number.zero? && @publisher.lineage.former? ? nil : terms)
      end

      # @api private
      # @see Queued#lineage
      def lineage
        @mutex.synchronize { @publisher.lineage.to_s }
      end

      # @api private
      # @see Queued#lineage=
      def lineage=(text)
        @mutex.synchronize { @publisher.lineage.adopt(text) }
      end

      # The hub wants the newest messages of a channel.
      # @api private
      # @param channel [String]
      # @return [void]
      def copy(channel)
        queue { @tracks.copy(channel, @subscriptions.asked) }
      end

      # Who takes what is in streams.
      # @api private
      # @return [#item, #copy, nil]
      attr_writer :hub_link

      # @api private
      # @param item [Queued::Item]
      # @return [Boolean] false: not now
      def item(item)
        return @hub_link.item(item) if @hub_link

        PROCESS.publish(item.channel, Queued.with_kind(item.text, item.kind)) if item.text # else it is a gap
        true
      end

      # @api private
      # @see Queued::HubLink#begins_at
      def begins_at(id)
        @hub_link&.begins_at(id)
      end

      # @api private
      def give(...)
        @hub_link ? @hub_link.copy(...) : false
      end

      private

      def terms_of(channel)
        rule = PubSub.rule_of(channel) or return
        Queued::Terms.new(rule.messages, rule.ttl_ms, rule.bytes.zero? ? nil : rule.bytes)
      end

      def begin_anew
        super
        @tracks = Tracks.new(@keys, self)
        @publisher = Publisher.new(@keys, @tracks, Returned.new(@outbox, @name, @log))
        @subscriptions = Subscribed.new(on_refusal: method(:refused)) { |*message| deliver(*message) }
        @subscriptions.place = @place
        @subscriptions.keys = @keys
        @subscriptions.on_connected = -> { @mutex.synchronize { @tracks.connected } }
      end

      def new_pump(&)
        StreamPump.new(@place, @outbox, @subscriptions, @mutex, outage: @outage, **@terms, &).tap do |pump|
          pump.tracks = @tracks
          pump.publisher = @publisher
        end
      end

      def hurry
        @mutex.synchronize { @publisher.returned.hurry }
        super
      end

      def said(entry)
        return [entry.channel, Queued.with_kind(entry.bytes, entry.kind), entry.number] if entry.is_a?(Kept)

        name, message = super
        return [@keys.name(name), message, 0] unless message.b.start_with?(Tracks::MAGIC)

        head, _, rest = message.b.partition("\n")
        [@keys.name(name), Queued.with_kind(rest, head[-1]), 0]
      end

      def push_kept(channel, message, terms, block, number = nil)
        return too_long if message.bytesize + RETURN_EXTRA > @terms[:reply_max]

        queue do
          start_replies if block
          entry = Kept.new(message.b, true, block && told_by(block, keeps: true), @subscriptions.asked)
          entry.channel = channel
          entry.terms = terms
          entry.kind = kind_of(message)
          entry.number = number || @publisher.lineage.next_number
          next true if !@outbox.crowded? && @outbox.push(entry)

          @outage.full(@outbox.limits)
          false
        end
      end

      def deliver(name, message)
        plain = @mutex.synchronize { @tracks.take(@keys.name(name), message) }
        super(*plain) if plain
      end
    end
  end
end
