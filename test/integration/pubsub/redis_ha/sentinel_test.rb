# frozen_string_literal: true

# An engine whose address names Sentinels: it goes where the master is.
# SPDX-License-Identifier: MIT

require_relative "../redis_case"
require "support/redis_ha"

class SentinelTest < RedisCase
  def setup
    super
    @redis = RedisFailover.new
  end

  def teardown
    super
    @redis.close
  end

  def test_the_master_is_found_and_found_again_when_it_is_another_one
    first, second = @redis.nodes
    engine = connect
    engine.subscribe("c", false)
    engine.publish("c", "1")
    assert_equal [["c", "1"]], take(1)
    assert_match(%r{^\* Redis at redis\+sentinel://\S+/main: the master is 127\.0\.0\.1:#{first.port}$}, @log.string)
    first.kill
    eventually("an outage") { !engine.connected? }
    answer = Thread::Queue.new
    engine.cmd("SET", "key", "value") { |reply| answer << reply }
    engine.publish("c", "2")
    assert_equal [["c", "2"]], take(1)
    assert_equal "OK", Timeout.timeout(PATIENCE) { answer.pop }
    assert_equal "value", second.cli("GET", "key")
    assert_match(/is available again after [\d.]+ s: the master is 127\.0\.0\.1:#{second.port}$/, @log.string)
    assert_equal 3, @log.string.lines.size, @log.string
  end
end
