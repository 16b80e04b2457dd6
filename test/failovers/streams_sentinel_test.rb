# frozen_string_literal: true

# Channels with a history while masters are killed one after the other, and Sentinels make replicas masters.
# SPDX-License-Identifier: MIT

require_relative "../integration/pubsub/redis_ha/failover_case"

class StreamsSentinelTest < FailoverCase
  def test_masters_are_killed_in_turn_while_messages_are_published
    begin_publishing
    ROUNDS.times do |round|
      gone = @redis.master
      from = @pair.map { |each| each.log.bytesize }
      gone.kill
      @pair.zip(from) { |each, at| each.wait_for_log(/is available again after [\d.]+ s: the master is (\S+)$/, from: at) }
      change_sides
      wait_for_progress
      next if round == ROUNDS - 1

      @redis.bring_back(gone)
    end
    finish_and_check
    @pair.each { |each| assert_one_line_for_each_outage(each.log) }
  end

  # It still takes itself for the master when it goes on, until a Sentinel tells it.
  def test_a_master_hangs_and_goes_on
    begin_publishing
    gone = @redis.master
    gone.freeze_process
    @pair.each { |each| each.wait_for_log(/not available: no answer within .*available again after [\d.]+ s: the master is (?!127\.0\.0\.1:#{gone.port}$)/m) }
    wait_for_progress
    gone.thaw
    wait_for_progress
    @redis.wait_until_whole if ROUNDS > 1
    finish_and_check
  end

  private

  # Sentinels may change their mind once more, so there may be more outages than kills.
  def assert_one_line_for_each_outage(log)
    turns = log.scan(/^[!*] Redis at \S+ is (not available|available again)/).flatten
    assert_operator turns.size, :>=, 2 * ROUNDS
    assert_equal ["not available", "available again"] * (turns.size / 2), turns, log
  end

  def new_redis
    RedisFailover.new(replicas: ROUNDS > 1 ? 2 : 1)
  end
end
