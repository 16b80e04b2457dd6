# frozen_string_literal: true

# What the tests of the Redis engine share: servers and engines.
# SPDX-License-Identifier: MIT

require_relative "outlet_case"
require "stringio"
require "support/redis_server"

class RedisCase < OutletCase
  # Short, because tests wait for some of them.
  QUICK = { timeout: 0.3, ping: 0.2 }.freeze

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
    Rondo::PubSub::Redis.new(url, log: log, **QUICK, **options).tap { |engine| @engines << engine }
  end

  def connect(url = @redis.url, **options)
    engine(url, **options).tap { |engine| engine.wait_until_connected(PATIENCE) }
  end
end
