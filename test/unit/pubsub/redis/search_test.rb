# frozen_string_literal: true

# Which node Sentinels and nodes of a cluster name, whatever they answer, and what a refusal means; without sockets.
# Covers redis/search.rb, redis/sentinels.rb and redis/cluster_nodes.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/redis"
require "rondo/pubsub/redis/address"
require "rondo/pubsub/redis/pump"
require "rondo/pubsub/redis/cluster_nodes"
require "rondo/pubsub/redis/sentinels"

class RedisSearchTest < Minitest::Test
  Redis = Rondo::PubSub::Redis
  Refusal = Redis::Replies::Refusal
  SLOT = Redis::ClusterNodes.slot("rondo")

  # Answers of servers instead of connections.
  module Answers
    attr_accessor :answers, :asked

    private

    def question(config, _words)
      (@asked ||= []) << config.port
      answer = answers.fetch(config.port)
      answer.is_a?(Exception) ? raise(answer) : answer
    end
  end

  def test_slots
    assert_equal 12_739, Redis::ClusterNodes.slot("123456789") # of the specification
    assert_equal 12_182, Redis::ClusterNodes.slot("foo")
  end

  def test_sentinels_are_asked_in_turn
    place = place("redis+sentinel://h:1,h:2,h:3/main", 1 => Redis::Link::Broken.new("gone"), 2 => %w[m 7], 3 => %w[m 8])
    found = Array.new(3) { place.find && place.found[/\d+\z/] }
    assert_equal [%w[7 7 8], [1, 2, 2, 3]], [found, place.asked]
  end

  # A server that names nobody, or a replica, says nothing.
  def test_whether_another_node_is_the_master
    place = place("redis+sentinel://h:1/main", 1 => %w[m 7])
    place.find
    refute place.moved?
    place.answers[1] = %w[m 8]
    { ["slave", "m", 7] => false, "OK" => false, Redis::Link::Broken.new("gone") => false, ["master", 0, []] => true }.each do |role, is_moved|
      place.answers[8] = role
      assert_equal is_moved, place.moved?, role.inspect
    end
    place.answers[1] = Redis::Link::Broken.new("gone")
    refute place.moved?
    refute place("redis://h", {}).moved?
  end

  def test_what_sentinels_may_answer
    { nil => "no master has the name main", [] => "this is no Sentinel", "OK" => "this is no Sentinel", %w[m] => "this is no Sentinel",
      ["m", nil] => "it names no address", [nil, "1"] => "it names no address", %w[m 0] => "it names no address",
      %w[m 65536] => "it names no address", ["a\nb", "1"] => "it names no address", ["m" * 256, "1"] => "it names no address",
      [["m"], "1"] => "it names no address" }.each do |answer, reason|
      error = assert_raises(Redis::Link::Broken) { place("redis+sentinel://h:1/main", 1 => answer).find }
      assert_match(/\Ano Sentinel names the master: .*#{reason}\z/, error.message)
      assert_equal 1, error.message.lines.size
    end
  end

  # The log has a line for each new reason, so a reason must not change with the order of the servers.
  def test_the_reason_is_the_same_each_time
    [Redis::Link::Broken, Redis::Link::Refused].each do |kind|
      place = place("redis+sentinel://h:1,h:2/main", 1 => kind.new("one"), 2 => kind.new("two" * 1000))
      messages = Array.new(3) { assert_raises(kind) { place.find }.message }
      assert_equal 1, messages.uniq.size
      assert_operator messages.first.size, :<, 500
    end
  end

  def test_the_node_of_a_slot
    rows = [[0, SLOT - 1, ["a", 1, "id"]], [SLOT, 16_383, ["b", 2, "id", []], ["c", 3, "id"]]]
    place = place("redis+cluster://h:9", 9 => rows, 1 => rows, 2 => rows, 3 => rows)
    assert_equal "slot #{SLOT} is at b:2", place.find
    place.answers[9] = Redis::Link::Broken.new("gone") # the others are known now
    4.times { assert_equal "slot #{SLOT} is at b:2", place.find }
    place.gone("MOVED #{SLOT} c:3")
    place.asked.clear
    place.find
    assert_equal [3], place.asked
  end

  def test_nodes_that_do_not_know_their_names
    [nil, "", "?"].each do |name|
      assert_equal "slot #{SLOT} is at h:7", place("redis+cluster://h:9", 9 => [[0, 16_383, [name, 7, "id"]]]).find
    end
  end

  def test_what_nodes_may_answer
    { "OK" => "this is no Redis Cluster", [] => "no node has slot #{SLOT}", [[1]] => "no node has slot #{SLOT}", [nil, "x", [0, 16_383]] => "no node has",
      [[0, 16_383, []]] => "no node has", [["0", 16_383, ["a", 1]]] => "no node has", [[0, 16_383, ["a", 0]]] => "it names no address",
      [[0, 16_383, [["a"], 1]]] => "it names no address", [[0, 16_383, ["a", 1], ["b\n", 99_999]]] => "it names no address" }.each do |answer, reason|
      error = assert_raises(Redis::Link::Broken, answer.inspect) { place("redis+cluster://h:9", 9 => answer).find }
      assert_match(/\Ano node of the cluster says where slot #{SLOT} is: .*#{reason}/, error.message)
    end
  end

  def test_refusals
    cluster = place("redis+cluster://h:9", {})
    elsewhere = ["MOVED #{SLOT} a:1", "ASK #{SLOT} a:1", "TRYAGAIN x", "CLUSTERDOWN x", "READONLY x", "LOADING x", "MASTERDOWN x"]
    assert_equal elsewhere, elsewhere.select { |text| cluster.elsewhere?(text) }
    ["MOVED 1 a:1", "ERR READONLY", "OOM x", "MOVED #{SLOT}"].each { |text| refute cluster.elsewhere?(text), text }
    ["MOVED #{SLOT} \n:1", "MOVED #{SLOT} a:99999", "MOVED"].each { |text| cluster.gone(text) } # no reason to fail
    refute place("redis://h", {}).elsewhere?("READONLY x")
    assert_equal elsewhere, elsewhere.map { |text| cluster.explain(text) }
    assert_match(/\AMOVED 1 a:1 \(of a Redis Cluster only the node of keys with \{rondo\}/, cluster.explain("MOVED 1 a:1"))
  end

  def test_which_clusters_have_shards
    cluster = place("redis+cluster://h:9", {})
    { "redis_version:6.2.14\r\n" => false, "redis_version:7.0.0\r\n" => true, "# Server\r\nredis_version:10.1\r\n" => true, "" => false }.each do |text, has|
      cluster.send(:check_version, text)
      assert_equal has, cluster.sharded?
    end
    assert_raises(Redis::Link::Refused) { cluster.send(:check_version, Refusal.new("NOPERM")) }
    refute_predicate place("redis://h", {}), :sharded?
  end

  def test_only_a_master_will_do
    place = place("redis+sentinel://h:1/main", 1 => %w[m 7])
    place.find
    place.send(:check_role, ["master", 1, []])
    [["slave", "m", 1], [], nil, "master"].each { |reply| assert_raises(Redis::Link::Broken) { place.send(:check_role, reply) } }
    assert_raises(Redis::Link::Refused) { place.send(:check_role, Refusal.new("NOPERM")) }
  end

  private

  def place(url, answers)
    Redis::Place.of(Redis::Address.new(url, {}), "rondo").tap do |place|
      place.extend(Answers)
      place.answers = answers
    end
  end
end
