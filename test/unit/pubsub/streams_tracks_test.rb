# frozen_string_literal: true

# What a server reads of the streams in Redis, with answers that come when the test says so.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/redis_streams"
require "redis-client"
require "rondo/pubsub/redis/pump"
require "rondo/pubsub/streams/publisher"
require "rondo/pubsub/streams/tracks"

class StreamsTracksTest < Minitest::Test
  Streams = Rondo::PubSub::RedisStreams

  # What was asked, with the block for the answer.
  class Link
    attr_reader :asked

    def initialize
      @asked = []
    end

    def ask(command, &block)
      @asked << [command, block]
    end

    def pending
      @asked.size
    end

    def ready?
      true
    end

    # @return [Array] the oldest command
    def answer(reply)
      command, block = @asked.shift
      block.call(reply)
      command
    end
  end

  # What the hub was given.
  class Outlet
    attr_reader :items, :copies

    def initialize
      @items = []
      @copies = []
    end

    def item(item)
      @items << [item.channel, item.id, item.text]
      true
    end

    def give(channel, floor, _now, _clock, items)
      @copies << [channel, floor, items.map(&:id)]
      true
    end
  end

  def setup
    @outlet = Outlet.new
    @tracks = Streams::Tracks.new(Streams::Scripts::Keys.new(nil), @outlet)
    @commands = Link.new
    @listener = Link.new
  end

  # Redis gave id 105 after the clock was read (100) and before it had SUBSCRIBE, so it never comes live.
  def test_a_message_between_the_clock_and_the_subscription_is_in_the_copy
    @tracks.copy("x", Streams::Terms.new(10, 0), 1)
    ask
    @commands.answer("100")
    assert_predicate @tracks, :marked?
    @tracks.connected
    ask
    settle
    found = [%w[105 90 t late], %w[90 0 t early]]
    assert_includes @commands.answer(["10", "105", "110", "105", 0, found]), "newest"
    settle
    assert_empty @outlet.copies
    ask
    assert_includes @commands.answer(["10", "105", "110", "105", 0, found.first(1)]), "next"
    settle
    assert_equal [["x", 105, "late"]], @outlet.items
    ask
    assert_includes @commands.answer(["10", "105", "110", "105", 0, found]), "newest"
    settle
    assert_equal [["x", 10, [90, 105]]], @outlet.copies
    assert_equal [["x", 105, "late"]], @outlet.items
  end

  private

  def ask
    @tracks.ask(@commands, @listener) { true }
  end

  # Answers each PING.
  def settle
    @listener.answer("PONG") until @listener.asked.empty?
    ask
  end
end
