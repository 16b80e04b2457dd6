# frozen_string_literal: true

# Redis Streams at its limits: Redis has no memory, messages wait until the queue is full, a message must not overtake
# another one.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "rondo"
require "rondo/pubsub/redis_streams"
require "rondo/pubsub/streams/scripts"

class StreamsLimitsTest < StreamsCase
  # /?many=CHANNEL:COUNT publishes that often.
  APP = StreamsCase::APP.sub("answer = channel ?", <<~RUBY.chomp)
    if channel == "many"
      name, _, count = message.rpartition(":")
      taken = Array.new(count.to_i) { |number| Rondo.publish(name, number.to_s) }.count(true)
      next [200, {}, [taken.to_s]]
    end
    answer = channel ?
  RUBY
  STREAM = "{rondo}:s:kept:x"
  Scripts = Rondo::PubSub::RedisStreams::Scripts

  def test_without_memory_messages_wait_and_are_written_once
    a, reader = server_with_reader("0")
    @redis.cli("CONFIG", "SET", "maxmemory", "1")
    1.upto(5) { |number| publish(a, "kept:x", number) }
    a.wait_for_log(/OOM/)
    assert_equal "1", @redis.cli("XLEN", STREAM)
    @redis.cli("CONFIG", "SET", "maxmemory", "0")
    reader.read_until { reader.seen.size == 6 }
    publish(a, "kept:x", "last")
    reader.read_until { reader.seen.last == "last" }
    assert_equal %w[0 1 2 3 4 5 last], reader.seen.sort
    assert_equal "7", @redis.cli("XLEN", STREAM)
    assert_equal 0, reader.resets
  end

  # Whoever publishes is told that it is on its way; what the queue does not take is counted.
  def test_messages_above_the_queue_are_lost_and_counted
    a = server
    publish_in_turn(a, "kept:x", %w[first])
    @redis.kill
    a.wait_for_log(/is not available/)
    assert_equal "10100", get(a, "/?many=kept:x:10100").body
    a.wait_for_log(/the queue is full \(10000 commands, 64 MiB\); messages published now are lost/)
    @redis.start
    a.wait_for_log(/the queue is empty again; 100 messages or commands were lost/)
  end

  def test_a_copy_of_several_pages
    a, reader = server_with_reader("first")
    reader.close
    assert_equal "1990", get(a, "/?many=kept:x:1990").body
    eventually("all of them") { length_of("kept:x") == 1991 }
    reader.open(server, "kept:x")
    reader.read_until { reader.seen.size == 1991 }
    assert_equal ["first", *(0...1990).map(&:to_s)], reader.seen
    assert_equal 0, reader.resets
  end

  # The oldest messages go; the newest stays, however long it is. Redis counts anew when the limit is new, or when the
  # channel went on without one.
  def test_bytes_of_a_channel
    numbers = (1..30).each
    say = ->(bytes, limit, size: 10) { place(numbers.next, before: -1, acknowledged: -1, text: "m" * bytes, limit: limit, size: size) }
    4.times { say.call(40, 0) }
    { [40, 100] => 2, [20, 100] => 3, [100, 100] => 1, [0, 100] => 2, [101, 100] => 1, [300, 100] => 1, [2, 100] => 1,
      [98, 100] => 2, [1, 0] => 3, [1, 100] => 3, [1, 100, 2] => 2 }.each do |(bytes, limit, size), count|
      assert_match(/\A\d{16}\z/, say.call(bytes, limit, size: size || 10).strip)
      assert_equal count.to_s, @redis.cli("XLEN", "{rondo}:s:x").strip, [bytes, limit, size].inspect
    end
    assert_match(/\A2 \d{16}\z/, @redis.cli("GET", "{rondo}:b:x").strip)
  end

  # The limit of the rule is kept there, and what a client missed is told.
  def test_a_rule_with_bytes
    write "config.ru", self.class::APP.sub("size: 3, ttl: 60", "size: 100, ttl: 60, bytes: 2000")
    a = server
    reader = reader(a, "few:x")
    wait_for_subscribers("few:x", 1)
    publish_in_turn(a, "few:x", %w[first])
    reader.read_until { reader.seen.size == 1 }
    reader.close
    sent = Array.new(5) { |number| number.to_s * 600 }
    sent.each { |text| publish(a, "few:x", text) }
    b = server
    eventually("three of them") { length_of("few:x") == 3 }
    reader.open(b, "few:x")
    reader.read_until { reader.seen.size == 4 }
    assert_equal 1, reader.resets
    assert_equal sent.sort.last(3).size, (sent & reader.seen).size
  end

  def test_redis_refuses_a_message_before_its_predecessor
    assert_match(/EARLY/, place("2", before: 1, acknowledged: -1))
    assert_operator place("1", before: -1, acknowledged: -1).to_i, :>, 1
    assert_operator place("2", before: 1, acknowledged: -1).to_i, :>, 1
    assert_equal "0", place("2", before: 1, acknowledged: -1)
    assert_match(/EARLY/, place("4", before: 3, acknowledged: 2))
  end

  # A replica that was behind has become the master.
  def test_redis_takes_a_message_whose_predecessors_it_had_acknowledged_and_lost
    place("1", before: -1, acknowledged: -1)
    assert_operator place("9", before: 8, acknowledged: 8).to_i, :>, 1
  end

  private

  def place(number, before:, acknowledged:, text: "m", limit: 0, size: 10)
    keys = Scripts::Keys.new(nil)
    names = [*keys.times, keys.by("p"), *keys.of("x"), keys.bytes_of("x")]
    words = [0, "x", number, before, 0, size, 0, "t", text, acknowledged, limit, ""]
    @redis.cli("EVAL", Scripts::PUBLISH, names.size.to_s, *names, *words.map(&:to_s))
  end
end
