# frozen_string_literal: true

# Channels with a history in a Redis Cluster: their slot moves while messages are published, and masters are killed.
# SPDX-License-Identifier: MIT

require_relative "failover_case"
require "support/redis_cluster"

class StreamsClusterTest < FailoverCase
  KEY = "{rondo}:begin"

  def setup
    @replicas = name.include?("killed") ? 1 : 0
    super
  end

  def test_the_slot_moves_while_messages_are_published
    begin_publishing
    (ROUNDS * 2).times do |round|
      to = (@redis.nodes - [@redis.owner(KEY)])[round % 2]
      from = @pair.map { |each| each.log.bytesize }
      @redis.move(KEY, to)
      @pair.zip(from) { |each, at| each.wait_for_log(/is available again after [\d.]+ s: slot \d+ is at 127\.0\.0\.1:#{to.port}$/, from: at) }
      wait_for_progress
    end
    finish_and_check
    assert_equal [0], @crowd.map(&:resets).uniq
    assert_equal [0], @pair.map { |each| each.log.scan(/Redis at .* were lost/).size }.uniq
  end

  def test_masters_are_killed_in_turn_while_messages_are_published
    begin_publishing
    ROUNDS.times do |round|
      gone = @redis.owner(KEY)
      from = @pair.map { |each| each.log.bytesize }
      gone.kill
      @pair.zip(from) { |each, at| each.wait_for_log(/is available again after [\d.]+ s: slot \d+ is at \S+$/, from: at) }
      wait_for_progress
      @redis.bring_back(gone) unless round == ROUNDS - 1
    end
    finish_and_check
  end

  private

  def new_redis
    RedisCluster.new(replicas: @replicas)
  end
end
