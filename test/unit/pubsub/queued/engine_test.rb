# frozen_string_literal: true

# What all engines with a queue do while their server is away (lib/rondo/pubsub/queued): messages wait, up to a limit,
# and what presence says does not.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/presence"
require "rondo/pubsub/presence/node"
require "rondo/pubsub/redis_streams"
require "stringio"
require "support/held_port"

class QueuedEngineTest < Minitest::Test
  PRESENCE = "#{Rondo::Presence::Node::PREFIX}0123456789abcdef".freeze
  ENGINES = {
    "Redis" => ->(port, **options) { Rondo::PubSub::Redis.new("redis://127.0.0.1:#{port}", **options) },
    "Redis Streams" => ->(port, **options) { Rondo::PubSub::RedisStreams.new("redis://127.0.0.1:#{port}", **options) },
    "NATS" => ->(port, **options) { Rondo::PubSub::Nats.new("nats://127.0.0.1:#{port}", **options) },
    "JetStream" => lambda { |port, **options|
      Rondo::PubSub::Nats.new("nats://127.0.0.1:#{port}", jetstream: true, **options)
    }
  }.freeze

  def setup
    @port = HeldPort.new
    @log = StringIO.new
  end

  def teardown
    @engine&.close(0)
    @port.close
  end

  def test_presence_takes_no_room_of_messages_while_the_server_is_away
    each_engine do |engine|
      100.times { refute engine.publish(PRESENCE, "a beat") }
      100.times { refute engine.publish("#{PRESENCE}:a room".b, "a change") }
      assert_equal 0, engine.queued
      3.times { |number| assert engine.publish("news", "message #{number}") }
      refute_match(/queue is full/, @log.string)
      refute engine.publish("news", "one too many")
      assert_match(/queue is full/, @log.string)
    end
  end

  # Whoever only uses presence needs a connection, too.
  def test_presence_begins_to_connect
    each_engine do |engine|
      before = Thread.list
      engine.publish(PRESENCE, "a beat")
      assert_match(/\Arondo (redis|nats)\z/, (Thread.list - before).map(&:name).join)
    end
  end

  def test_close_says_what_is_lost_in_one_line
    each_engine do |engine|
      5.times { engine.publish("news", "message") }
      @log.string = +""
      engine.close(0)
      assert_equal ["3 messages were not sent; 2 messages or commands were lost before, because the queue was full"],
                   @log.string.scan(/^! \S.*?: (\d.*)$/).flatten
    end
  end

  private

  def each_engine
    ENGINES.each_value do |make|
      @log.string = +""
      @engine = make.call(@port.number, queue: 3, log: Rondo::Logger.new(io: @log))
      yield @engine
      @engine.close(0)
    end
  end
end
