# frozen_string_literal: true

# What is published on channels with a history, on its way to Redis: each message has a number of its own, so that
# Redis writes it once however often it is sent. Belongs to the engine's thread (pump.rb).
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/lineage"
require "rondo/pubsub/streams/returned"
require "rondo/pubsub/streams/scripts"

module Rondo
  module PubSub
    class RedisStreams < Redis
      # A message that waits; its bytes are the payload.
      # @api private
      class Kept < Redis::Entry
        # @return [Integer] of the messages of this publisher
        attr_accessor :number
        # @return [String]
        attr_accessor :channel
        # @return [Queued::Terms]
        attr_accessor :terms
        # @return [String] "t" for text, "b" for binary
        attr_accessor :kind
      end

      # Makes the commands of one publisher.
      # @api private
      class Publisher
        # Another connection is needed, maybe to another node.
        ELSEWHERE = /\b(#{Redis::Replies::Refusal::ELSEWHERE}|NOSCRIPT)\b|\A(MOVED|ASK)\ /

        # @param keys [Scripts::Keys]
        # @param tracks [Tracks] knows which ids there are
        # @param returned [Returned]
        def initialize(keys, tracks, returned)
          @keys = keys
          @tracks = tracks
          @returned = returned
          @lineage = Queued::Lineage.new
          @sent = @answered = @written = -1
          @written_at = 0
        end

        # @return [Queued::Lineage]
        attr_reader :lineage
        # @return [Returned]
        attr_reader :returned

        # @param number [Integer]
        # @return [Boolean] whether the one before it gave that number, and no new one was given: Redis takes what has a
        #   lower one for written
        def own?(number)
          @lineage.former_number?(number) && !@lineage.begun?
        end

        # What Redis has acknowledged.
        # @return [Array(String, Integer, Integer)] key of this publisher, number of its last message, and the id
        def acknowledged
          [@keys.by(@lineage.name), @written, @written_at]
        end

        # It is encoded when it is sent, because it names the message before it that Redis has.
        # @param entry [Kept]
        # @param is_sharded [Boolean] see {Place#sharded?}
        # @return [String] the command
        def encode(entry, is_sharded = false) # rubocop:disable Style/OptionalBooleanParameter
          @returned.sent
          before = @sent
          @sent = entry.number
          channel = entry.channel
          terms = entry.terms
          keys = [*@keys.times, @keys.by(@lineage.name), *@keys.of(channel), *(@keys.bytes_of(channel) if terms.limit)]
          words = [@tracks.seen, @keys.channel(channel), entry.number, before, @tracks.last_of(channel), terms.messages,
                   terms.ttl_ms, entry.kind, entry.bytes, @answered, terms.limit || 0,
                   is_sharded ? @keys.shard(channel) : ""]
          Redis::Link.encode(Scripts.call(Scripts::PUBLISH, keys, words))
        end

        # @param entry [Kept] Redis has written it
        # @param id [Integer] 0: it had written it before
        # @return [void]
        def written(entry, id)
          @written = [@written, entry.number].max
          @written_at = [@written_at, id].max
          @returned.over
          answered(entry)
        end

        # What follows does not wait for it.
        # @param entry [Kept] Redis has written it, or will never take it
        # @return [void]
        def answered(entry)
          @returned.answered
          @answered = entry.number unless @returned.before?(entry.number)
        end

        # @param entry [Kept] Redis did not take it, and will
        # @param reason [String]
        # @return [void]
        def take_back(entry, reason)
          @returned.back(entry, reason)
          @sent = @answered
        end

        # The connection is closed.
        # @return [void]
        def forget_link
          @sent = @answered
          @returned.forget_link
        end
      end
    end
  end
end
