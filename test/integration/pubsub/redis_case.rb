# frozen_string_literal: true

# What the tests of the Redis engine share: servers, engines, and what an engine hands on, caught before
# it reaches a server of ours.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "stringio"
require "support/redis_server"
require "timeout"

class RedisCase < Minitest::Test
  PATIENCE = 20
  # Short, because tests wait for some of them.
  QUICK = { timeout: 0.3, ping: 0.2 }.freeze

  # Takes what an engine hands on.
  class Outlet
    attr_reader :received

    def initialize
      @received = Thread::Queue.new
    end

    def publish_here(channel, message)
      @received << [channel, message]
      true
    end
  end

  def setup
    @outlet = Rondo::PubSub.outlet = Outlet.new
    @log = StringIO.new
    @engines = []
    @servers = []
  end

  def teardown
    @engines.each { |engine| engine.close(0) }
    Rondo::PubSub.outlet = nil
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

  def take(count)
    Array.new(count) { |index| Timeout.timeout(PATIENCE) { @outlet.received.pop } rescue flunk("message #{index} never came: #{@log.string}") }
  end

  def eventually(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (found = yield)
      flunk "this never came: #{what}; #{@log.string}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.005)
    end
    found
  end
end
