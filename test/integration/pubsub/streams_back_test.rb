# frozen_string_literal: true

# A Redis that went back to an older state, as a replica does that was behind when it became the master: what it had
# acknowledged is lost, and everybody is told, whoever publishes first.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "support/tcp_cutter"

class StreamsBackTest < StreamsCase
  KEYS = { "m" => "{rondo}:m:kept:x", "clock" => "{rondo}:clock" }.freeze

  def setup
    super
    @cutters = Array.new(2) { TcpCutter.new(@redis.port) }
    @pair = @cutters.map { |cutter| server(redis: "redis://127.0.0.1:#{cutter.port}") }
    @both = @pair.map { |each| reader(each, "kept:x") }
    wait_for_subscribers("kept:x", 2)
    publish(@pair.first, "kept:x", "1")
    @both.each { |each| each.read_until { each.seen == ["1"] } }
  end

  def teardown
    super
    @cutters.each(&:close)
  end

  # Only the clients of the first server have seen the message that is lost.
  def test_a_message_that_others_have_not_seen
    cut(1)
    lose("2") { @both.first.read_until { @both.first.seen.last == "2" } }
    mend(1)
    publish(@pair.last, "kept:x", "3")
    @both.last.read_until { @both.last.seen.last == "3" }
    assert_equal 0, @both.last.resets # nobody knows yet
    mend(0)
    @pair.first.wait_for_log(/available again/)
    publish(@pair.last, "kept:x", "4")
    @both.each { |each| each.read_until { each.seen.last == "4" && each.resets == 1 } }
    assert_equal [%w[1 2 4], %w[1 3 4]], @both.map { |each| each.seen - (each == @both.first ? ["3"] : []) }
  end

  # Nobody has seen it, but its publisher knows that it was acknowledged.
  def test_a_message_that_nobody_has_seen
    @both.each(&:close)
    wait_for_subscribers("kept:x", 0)
    cut(1)
    lose("2")
    mend(0)
    mend(1)
    @pair.each { |each| each.wait_for_log(/available again/) }
    @both.zip(@pair) { |reader, each| reader.open(each, "kept:x") }
    @both.each { |each| each.read_until { each.resets == 1 } }
  end

  # One of the channels has no message afterwards.
  def test_a_redis_that_lost_all_is_told_of_each_channel
    stream = reader(@pair.first, "kept:x", "kept:y")
    wait_for_subscribers("kept:y", 1)
    publish(@pair.first, "kept:y", "y1")
    stream.read_until { stream.seen == ["y1"] }
    cut(0)
    @redis.cli("FLUSHALL")
    mend(0)
    publish(@pair.last, "kept:y", "y2")
    stream.read_until { stream.seen == %w[y1 y2] && stream.resets == 2 }
    @both.first.read_until { @both.first.resets == 1 }
  end

  # Clients that miss nothing are not told anything.
  def test_a_redis_that_lost_nothing
    [0, 1].each { |index| cut(index) }
    [0, 1].each { |index| mend(index) }
    @pair.each { |each| each.wait_for_log(/available again/) }
    publish(@pair.first, "kept:x", "2")
    @both.each { |each| each.read_until { each.seen == %w[1 2] } }
    assert_equal [0, 0], @both.map(&:resets)
  end

  private

  def cut(index)
    from = @pair[index].log.bytesize
    @cutters[index].cut
    @pair[index].wait_for_log(/not available/, from: from)
  end

  def mend(index)
    @cutters[index].mend
  end

  # The first server publishes, Redis acknowledges, and then has the state of before.
  def lose(message)
    before = KEYS.transform_values { |key| @redis.cli("GET", key) }
    by = publishers
    publish_in_turn(@pair.first, "kept:x", [message])
    reader(@pair.first, "kept:z") # its clock is asked behind the message: when it is subscribed, both answers are here
    wait_for_subscribers("kept:z", 1)
    yield if block_given?
    cut(0)
    id = @redis.cli("GET", KEYS["m"])
    @redis.cli("XDEL", "{rondo}:s:kept:x", "#{id}-0")
    KEYS.each { |name, key| @redis.cli("SET", key, before[name]) }
    by.each { |key, number| @redis.cli("HSET", key, "number", number) }
  end

  def publishers
    @redis.cli("KEYS", "{rondo}:by:*").lines(chomp: true).to_h { |key| [key, @redis.cli("HGET", key, "number")] }
  end
end
