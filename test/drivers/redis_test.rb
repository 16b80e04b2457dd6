# frozen_string_literal: true

# redis-client, with both of its drivers and a real Redis.
# SPDX-License-Identifier: MIT

require_relative "servers"
require "redis-client"
require "hiredis-client"

module RedisClients
  include WaitingClients

  def gate = Servers.redis
  def connect = RedisClient.config(url: gate.url, driver: self.class::DRIVER, reconnect_attempts: 0).new_client
  def enter(client, number) = Integer(client.blocking_call(0, *RedisGate.command(number)).last)
  def session_of(client, _number) = client.call("CLIENT", "ID")
  def leave(client) = client.close
  def lost_errors = [RedisClient::Error]

  def test_pipelines_and_limits_of_the_client
    seen = WaitingClients.in_fibers do |all|
      all.map(1..3) do |n|
        client = connect
        added = client.pipelined { |pipe| 1000.times { |i| pipe.call("SET", "key:#{n}:#{i}", "v" * 1000) } }.uniq
        late = WaitingClients.error_of { client.blocking_call(0.05, "BLPOP", "none", 0) }
        [added, late, client.close].take(2)
      end
    end
    assert_equal [[["OK"], RedisClient::ReadTimeoutError]] * 3, seen
  end

  def test_subscriptions
    seen = WaitingClients.in_fibers do |all|
      listener = connect.pubsub
      listener.call("SUBSCRIBE", "news")
      waiting = all.start { Array.new(2) { listener.next_event(PATIENCE).last } }
      client = connect
      sleep 0.001 until client.call("PUBLISH", "news", "hello") == 1
      [waiting.value, listener.close, client.close].first
    end
    assert_equal [1, "hello"], seen
  end

  def test_a_pool_with_fewer_connections
    pool = RedisClient.config(url: gate.url, driver: self.class::DRIVER).new_pool(size: 4, timeout: PATIENCE)
    seen = WaitingClients.in_fibers { |all| all.map(1..20) { |n| pool.call("ECHO", n.to_s) } }
    assert_equal (1..20).map(&:to_s), seen
    assert_operator gate.clients.size, :<=, 5
  ensure
    pool&.close
  end
end

class DriverRedisClientTest < Minitest::Test
  include RedisClients

  ROW = ["redis-client", "yes"].freeze
  DRIVER = :ruby

  def test_the_version_of_the_server
    assert Servers::PAGE.include?("Redis #{gate.version}"), "Redis #{gate.version}"
  end
end

class DriverHiredisClientTest < Minitest::Test
  include BlockingCalls

  ROW = ["hiredis-client", "no"].freeze

  def setup
    @client = RedisClient.config(url: gate.url, driver: :hiredis).new_client
    gate.shut
  end

  def teardown
    @client.close
  end

  def gate = Servers.redis
  def enter = @client.blocking_call(0, *RedisGate.command(3)).last

  def test_it_blocks
    assert_equal %i[call other], order(inside: -> { gate.inside == 1 }, open: gate.method(:open)) { enter }
  end

  def test_it_is_offloaded
    assert_equal "21", offloaded { enter }
  end
end
