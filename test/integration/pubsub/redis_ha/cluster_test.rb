# frozen_string_literal: true

# An engine in a Redis Cluster: it goes to the node of its slot, also when the slot moves.
# SPDX-License-Identifier: MIT

require_relative "../redis_case"
require "support/redis_cluster"

class RedisClusterTest < RedisCase
  KEY = "{rondo}:key"

  def setup
    super
    @cluster = RedisCluster.new
  end

  def teardown
    super
    @cluster.close
  end

  def test_it_goes_to_the_node_of_its_slot_and_follows_it
    engine = connect(@cluster.url)
    owner = @cluster.owner(KEY)
    slot = @cluster.nodes.first.cli("CLUSTER", "KEYSLOT", KEY)
    assert_match(%r{^\* Redis at redis\+cluster://\S+: slot #{slot} is at 127\.0\.0\.1:#{owner.port}$}, @log.string)
    engine.subscribe("c", false)
    engine.subscribe("d*", true)
    engine.publish("c", "1")
    engine.publish("d1", "2")
    assert_equal [%w[c 1], %w[d1 2]], take(2)
    assert_equal "OK", ask(engine, "SET", KEY, "value")
    to = (@cluster.nodes - [owner]).first
    @cluster.move(KEY, to)
    assert_equal "value", ask(engine, "GET", KEY)
    engine.publish("c", "3")
    assert_equal [%w[c 3]], take(1)
    assert_match(/: slot #{slot} is at 127\.0\.0\.1:#{to.port}$/, @log.string.lines.last)
  end

  def test_a_key_of_another_node_is_an_error_that_says_so
    engine = connect(@cluster.url)
    key = ("a".."z").find { |each| @cluster.owner(each) != @cluster.owner(KEY) }
    error = ask(engine, "SET", key, "1")
    assert_instance_of Rondo::PubSub::Redis::Error, error
    assert_match(/\AMOVED \d+ 127\.0\.0\.1:\d+ \(of a Redis Cluster only the node of keys with \{rondo\} in their names is connected\)\z/, error.message)
    assert_equal "OK", ask(engine, "SET", KEY, "1")
  end

  def test_a_message_reaches_who_listens_at_any_node
    engine = connect(@cluster.url)
    engine.subscribe("c", false)
    engine.publish("c", "1")
    take(1)
    @cluster.nodes.each { |node| node.cli("PUBLISH", "c", "from #{node.port}") }
    assert_equal(@cluster.nodes.map { |node| ["c", "from #{node.port}"] }.sort, take(3).sort)
  end

  def test_the_address_of_one_node_as_that_of_a_redis
    other = (@cluster.nodes - [@cluster.owner(KEY)]).first
    error = ask(connect(other.url), "SET", KEY, "1")
    assert_match(/\AMOVED .* \(this is a node of a Redis Cluster: its address begins with redis\+cluster\)\z/, error.message)
  end

  def test_a_redis_without_a_cluster
    engine = engine(redis.url.sub("redis:", "redis+cluster:"))
    assert_match(/no node of the cluster says where slot \d+ is: ERR This instance has cluster support disabled/, refusal_of(engine))
    assert_equal 1, @log.string.lines.size
  end

  private

  def ask(engine, *words)
    answer = Thread::Queue.new
    engine.cmd(*words) { |reply| answer << reply }
    Timeout.timeout(PATIENCE) { answer.pop }
  end
end
