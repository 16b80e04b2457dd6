# frozen_string_literal: true

# The thread of an engine while a server has taken its connection and does not answer: it sleeps.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/redis_streams"
require "stringio"
require "support/waiting"

class IdleTest < Minitest::Test
  include Waiting

  INFO = "INFO {\"version\":\"2.10.0\"}\r\n"
  # Each link ends by its time. One has far fewer turns than this, a thread that does not sleep has thousands.
  MOST = 100

  def test_redis_that_only_accepts
    [Rondo::PubSub::Redis, Rondo::PubSub::RedisStreams].each do |kind|
      assert_few_turns("") { |port, words| kind.new("redis://127.0.0.1:#{port}", **words) }
    end
  end

  def test_nats_that_only_greets
    assert_few_turns(INFO) { |port, words| Rondo::PubSub::Nats.new("nats://127.0.0.1:#{port}", **words) }
  end

  def test_nats_whose_jetstream_does_not_answer
    assert_few_turns("#{INFO}PONG\r\n") do |port, words|
      Rondo::PubSub::Nats.new("nats://127.0.0.1:#{port}", jetstream: true, **words)
    end
  end

  private

  def assert_few_turns(greeting)
    log = StringIO.new
    turns = 0
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new { loop { (@sockets ||= []) << server.accept.tap { |socket| socket.write(greeting) } } }
    engine = yield(server.addr[1], { timeout: 1, log: Rondo::Logger.new(io: log) })
    count_turns(engine) { turns += 1 }
    engine.start
    wait_until { log.string.include?("no answer within 1 s") }
    assert_includes 1...MOST, turns
  ensure
    engine&.close(0)
    thread&.kill
    [server, *@sockets].each { |each| each&.close }
    @sockets = nil
  end

  def count_turns(engine, &count)
    engine.define_singleton_method(:begin_pump) do
      super().tap do |pump|
        pump.define_singleton_method(:turn) do
          count.call
          super()
        end
      end
    end
  end
end
