# frozen_string_literal: true

# Channels with a history in a Redis Cluster: their slot moves while messages are published, and masters are killed.
# SPDX-License-Identifier: MIT

require_relative "../integration/pubsub/redis_ha/failover_case"
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
      change_sides
      wait_for_progress
      @redis.bring_back(gone) unless round == ROUNDS - 1
    end
    finish_and_check
  end

  # Only patterns need that the nodes pass messages to each other.
  def test_messages_with_a_history_stay_at_their_node
    a, b = Array.new(2) { server }
    by_name = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish_in_turn(b, "kept:x", 1..20)
    by_name.read_until { by_name.seen.size == 20 }
    assert_equal 0, passed
    by_pattern = reader(a, "pattern:kept:*")
    eventually("a pattern") { @redis.owner(KEY).cli("PUBSUB", "NUMPAT") == "1" }
    publish_in_turn(b, "kept:x", 21..40)
    [by_name, by_pattern].each { |each| each.read_until { each.seen.last == "40" } }
    assert_equal [(1..40).map(&:to_s), (21..40).map(&:to_s)], [by_name.seen, by_pattern.seen]
    assert_equal 40, passed # to the two others
    publish(b, "plain", "x")
    eventually("a plain message") { passed == 42 }
  end

  def test_channels_come_and_go_and_the_slot_moves
    a, b = Array.new(2) { server }
    5.times do |round|
      reader = reader(a, "kept:x")
      wait_for_subscribers("kept:x", 1)
      publish(b, "kept:x", round)
      reader.read_until { reader.seen == [round.to_s] }
      reader.close
      wait_for_subscribers("kept:x", 0)
    end
    from = a.log.bytesize
    @redis.move(KEY, (@redis.nodes - [@redis.owner(KEY)]).first)
    a.wait_for_log(/is not available: the slot has moved.*available again/m, from: from)
  end

  private

  # Nobody is to be asked for it: any node may have the subscription.
  def wait_for_subscribers(channel, count)
    eventually("#{count} subscribed") { @redis.owner(KEY).cli("PUBSUB", "NUMSUB", channel).split.last == count.to_s }
  end

  # Messages that nodes have passed to others.
  def passed
    @redis.nodes.sum { |node| node.cli("CLUSTER", "INFO")[/messages_publish_sent:(\d+)/, 1].to_i }
  end

  def new_redis
    RedisCluster.new(replicas: @replicas)
  end
end
