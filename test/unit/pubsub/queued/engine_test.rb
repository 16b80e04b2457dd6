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
require "support/waiting"

class QueuedEngineTest < Minitest::Test
  include Waiting

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

  # It greets, and says nothing more.
  STOPPED = { "Redis" => "+PONG\r\n", "NATS" => "INFO {}\r\nPONG\r\n" }.freeze

  def test_presence_leaves_room_while_the_server_has_stopped
    STOPPED.each do |name, greeting|
      saying(greeting) do |port|
        @engine = ENGINES.fetch(name).call(port, queue: 8, timeout: 2, log: Rondo::Logger.new(io: @log))
        @engine.wait_until_connected(60)
        assert_equal 2, Array.new(8) { @engine.publish(PRESENCE, "a beat") }.count(true), name
        assert_equal 6, Array.new(6) { @engine.publish("news", "message") }.count(true), name
        assert_empty @log.string.scan("full")
        wait_until { @engine.queued == 6 } # the connection is given up, and beats with it
        @engine.close(0)
      end
    end
  end

  NO = { /Redis/ => "-WRONGPASS invalid username-password pair\r\n" * 2, /NATS|JetStream/ => "INFO {}\r\n-ERR 'Authorization Violation'\r\n" }.freeze
  FOREVER = 3600 # a wait that is not cut short never ends

  # Another attempt would not help, and nobody is told twice.
  def test_who_waits_for_a_server_that_does_not_know_it_learns_that_at_once
    ENGINES.each do |name, make|
      attempts = saying(NO.find { |pattern, _| pattern.match?(name) }.last) do |port|
        @engine = make.call(port, log: Rondo::Logger.new(io: @log))
        error = assert_raises(@engine.class::Error, name) { @engine.wait_until_connected(FOREVER) }
        assert_match(/\A\S+ at \S+ is not available: (WRONGPASS|Authorization Violation)/, error.message)
        assert_equal 1, error.message.lines.size
        @engine.close(0)
      end
      assert_equal [1, ""], [attempts, @log.string], name
    end
  end

  # Each address of NATS may have its own user.
  def test_one_of_several_addresses_that_does_not_know_it_is_not_the_end
    saying(NO.values.last) do |port|
      @engine = Rondo::PubSub::Nats.new("nats://127.0.0.1:#{port},nats://127.0.0.1:#{@port.number}", log: Rondo::Logger.new(io: @log))
      @engine.start
      3.times { @asked.pop }
      refute @engine.instance_variable_get(:@outage).denied?
    end
  end

  private

  # A server that says no. Answers how many have asked.
  def saying(bytes)
    @asked = Thread::Queue.new
    TCPServer.open("127.0.0.1", 0) do |server|
      thread = Thread.new do
        loop do
          socket = server.accept
          @asked << true
          socket.write(bytes)
          nil while socket.wait_readable(60) && socket.read_nonblock(4096, exception: false)
          socket.close
        rescue SystemCallError
          socket&.close
        end
      end
      yield server.addr[1]
    ensure
      thread.kill
    end
    @asked.size
  end

  def each_engine
    ENGINES.each_value do |make|
      @log.string = +""
      @engine = make.call(@port.number, queue: 3, log: Rondo::Logger.new(io: @log))
      yield @engine
      @engine.close(0)
    end
  end
end
