# frozen_string_literal: true

# Shared by the tests of the Redis engine: servers and engines.
# SPDX-License-Identifier: MIT

require_relative "outlet_case"
require "stringio"
require "support/redis_server"

class RedisCase < OutletCase
  # Short, because tests wait for some of them, and long enough for a Redis that the machine holds up. Only the tests of
  # the deadline should run into it.
  TERMS = { timeout: PATIENCE, ping: 0.2 }.freeze
  SOON = 4

  def setup
    super
    @log = StringIO.new
    @servers = []
  end

  def teardown
    super
    @servers.each(&:close)
  end

  private

  def redis(*words, **options)
    RedisServer.new(*words, **options).tap { |server| @servers << server }
  end

  def log
    Rondo::Logger.new(io: @log)
  end

  def engine(url, **options)
    Rondo::PubSub::Redis.new(url, log: log, **TERMS, **options).tap { |engine| @engines << engine }
  end

  # @return [String] the log's text about a Redis that cannot be reached
  def refusal_of(engine)
    engine.start
    eventually("an outage") { @log.string.include?("is not available") }
    assert_raises(Rondo::PubSub::Redis::Error) { engine.wait_until_connected(0.05) }.message
  end

  def connect(url = @redis.url, **options)
    engine(url, **options).tap { |engine| engine.wait_until_connected(PATIENCE) }
  end
end
