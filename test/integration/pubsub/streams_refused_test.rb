# frozen_string_literal: true

# What becomes of messages that Redis refuses, for now or for good, and of everything else meanwhile.
# Covers streams/returned.rb.
# SPDX-License-Identifier: MIT

require_relative "redis_case"
require "rondo/pubsub/redis_streams"
require "rondo/pubsub/streams/pump"

class StreamsRefusedTest < RedisCase
  TERMS_OF_RULE = Rondo::PubSub::Queued::Terms.new(1000, 0, nil)
  STREAMS = Rondo::PubSub::RedisStreams

  # What an engine tells its hub.
  Hub = Struct.new(:told) do
    def item(item) = (told << [:item, item.text])
    def begins_at(_id) = true
    def copy(_channel, floor, _now, _known, items) = (told << [:copy, floor, items])
    def take = Timeout.timeout(StreamsRefusedTest::PATIENCE) { told.pop }
  end

  def setup
    super
    @redis = redis
    @answers = Thread::Queue.new
  end

  # Redis answers, and takes what it need not keep.
  def test_what_is_refused_for_now_holds_up_nothing_else
    engine = streams
    engine.subscribe("plain", false)
    engine.subscribe("kept", false, 1)
    assert_equal "1", publish(engine, "1").to_s[0]
    connections = @redis.cli("INFO", "stats")[/total_connections_received:(\d+)/, 1].to_i
    refuse_for_now
    %w[2 3 4].each { |text| keep(engine, text) }
    eventually("a line") { @log.string.include?("does not write now: NOREPLICAS") }
    50.times { |number| engine.publish("plain", number.to_s) }
    assert_equal [["kept", "1"], *Array.new(50) { |number| ["plain", number.to_s] }], take(51)
    assert_equal [true, 3, true], [engine.connected?, engine.queued, @answers.empty?]
    write_again
    assert_equal [%w[kept 2], %w[kept 3], %w[kept 4]], take(3)
    ids = Array.new(3) { answer }
    assert_equal ids.sort, ids
    assert_operator ids.first, :>, 1
    assert_equal 0, engine.flush(PATIENCE)
    # Three of them are the calls of redis-cli.
    assert_equal connections + 3, @redis.cli("INFO", "stats")[/total_connections_received:(\d+)/, 1].to_i
    assert_equal 3, @log.string.lines.size, @log.string
    assert_match(/^! .* does not write now: NOREPLICAS [^:]*; messages of channels with a history wait$/, @log.string)
    assert_match(/^\* .* writes again after \d+\.\d s$/, @log.string)
  end

  # The rest of the queue is for messages that Redis takes.
  def test_a_crowd_of_refused_messages_leaves_room
    engine = streams(queue: 8)
    engine.subscribe("plain", false)
    refuse_for_now
    6.times { |number| keep(engine, number.to_s) }
    eventually("all have come back") { engine.instance_variable_get(:@outbox).crowded? }
    refute engine.publish("kept", "6", TERMS_OF_RULE)
    assert_match(/the queue is full/, @log.string)
    assert engine.publish("plain", "x")
    assert_equal [%w[plain x]], take(1)
    write_again
    assert_equal 0, engine.flush(PATIENCE)
    keep(engine, "7")
    assert_equal 0, engine.flush(PATIENCE)
    assert_equal %w[0 1 2 3 4 5 7], texts("kept")
  end

  # A message goes out again after longer and longer pauses, and alone.
  def test_pauses_grow
    engine = streams
    refuse_for_now
    100.times { |number| keep(engine, number.to_s) }
    eventually("a line") { @log.string.include?("does not write now") }
    @redis.cli("CONFIG", "RESETSTAT")
    sleep(1.5) # that is what is counted
    calls = @redis.cli("INFO", "commandstats")[/cmdstat_evalsha:calls=(\d+)/, 1].to_i
    assert_operator calls, :<, 10
    assert_equal 100, engine.queued
    write_again
    assert_equal 0, engine.flush(PATIENCE)
    assert_equal Array.new(100, &:to_s), texts("kept")
  end

  def test_a_connection_that_is_lost_meanwhile
    engine = streams
    refuse_for_now
    engine.publish("plain", "before")
    numbers = Array.new(20) { |number| keep(engine, number.to_s) && number.to_s }
    eventually("a line") { @log.string.include?("does not write now") }
    @redis.cli("CLIENT", "KILL", "TYPE", "normal")
    keep(engine, "last")
    eventually("another connection") { @log.string.include?("is available again") }
    write_again
    assert_equal 0, engine.flush(PATIENCE)
    assert_equal [*numbers, "last"], texts("kept")
    assert_equal 1, @log.string.scan("does not write now").size
  end

  # What is not sent is counted, and what another engine goes on with is there, in order.
  def test_the_end_with_messages_that_are_refused
    one, two = Array.new(2) { streams }
    refuse_for_now
    [one, two].each { |engine| 5.times { |number| keep(engine, number.to_s) } }
    eventually("two lines") { @log.string.scan("does not write now").size == 2 }
    assert_equal 5, one.flush(0.1)
    one.close(0.3)
    assert_match(/: 5 messages were not sent$/, @log.string)
    handed = []
    assert_equal [5, 0], two.hand_on { |_, message, number| handed << [message, number] }
    assert_equal Array.new(5) { |number| [number.to_s, number + 1] }, handed
    assert_equal 0, two.queued
  end

  # The end does not wait for a pause.
  def test_a_last_attempt
    engine = streams
    refuse_for_now
    keep(engine, "1")
    eventually("longer pauses") { @redis.cli("INFO", "commandstats")[/cmdstat_evalsha:calls=(\d+)/, 1].to_i > 5 }
    write_again
    engine.close(PATIENCE)
    assert_equal ["1"], texts("kept")
    refute_includes @log.string, "were not sent"
  end

  # Others do not wait for it, and it is refused once.
  def test_what_is_refused_for_good_is_answered_and_nobody_waits_for_it
    engine = streams
    @redis.cli("SET", "{rondo}:s:bad", "x")
    sent = mixed(engine)
    assert_equal 0, engine.flush(PATIENCE)
    assert_equal sent, texts("kept")
    assert_equal [30, 270], Array.new(300) { answer }.partition { |each| each == false }.map(&:size)
    assert_equal 2, @log.string.lines.size, @log.string
    assert_match(/: WRONGTYPE /, @log.string.lines.last)
  end

  # Who comes back to such a channel is told that something is missing, and the connections stay.
  def test_a_channel_whose_key_has_another_type_is_followed
    engine = streams
    engine.hub_link = hub = Hub.new(Thread::Queue.new)
    %w[kept other].each { |name| engine.subscribe(name, false, 1) }
    last = publish(engine, "1")
    assert_equal [:item, "1"], hub.take
    @redis.cli("SET", "{rondo}:s:kept", "x")
    engine.copy("kept")
    assert_equal [:copy, last, []], hub.take
    @redis.cli("CLIENT", "KILL", "TYPE", "normal")
    eventually("another connection") { @log.string.include?("is available again") }
    keep(engine, "2", "other")
    assert_operator answer, :>, last
    assert_equal [:item, "2"], hub.take
    refute_includes @log.string, "WRONGTYPE"
  end

  # Redis does not run the script then.
  def test_a_key_that_the_user_may_not_use
    keys = %w[begin clock by:* m:* s: s:kept].map { |key| "~{rondo}:#{key}" }
    @redis = redis(users: ["user default on nopass ~* &* +@all", "user app on >secret #{keys.join(" ")} &* +@all"])
    engine = streams(@redis.url("app:secret"))
    sent = mixed(engine)
    assert_equal 0, engine.flush(PATIENCE)
    assert_equal sent, texts("kept")
    assert_equal 30, Array.new(300) { answer }.count(false)
    assert_match(/: NOPERM /, @log.string)
    assert_equal 2, @log.string.lines.size, @log.string
  end

  # It is kept, and nobody hears of it: the answer is false, and the next messages go on.
  def test_a_channel_that_the_user_may_not_publish_to
    @redis = redis(users: ["user default on nopass ~* &* +@all", "user app on >secret ~* &kept +@all"])
    engine = streams(@redis.url("app:secret"))
    keep(engine, "1", "forbidden")
    keep(engine, "2")
    assert_equal false, answer
    assert_operator answer, :>, 1
    assert_equal [["1"], ["2"]], [texts("forbidden"), texts("kept")]
    assert_match(/can't publish to the channel|NOPERM/, @log.string)
  end

  private

  def streams(url = @redis.url, **terms)
    engine = STREAMS.new(url, log: log, **TERMS, **terms).tap { |each| @engines << each }
    engine.wait_until_connected(PATIENCE)
    engine
  end

  def refuse_for_now
    @redis.cli("CONFIG", "SET", "min-replicas-to-write", "1")
  end

  def write_again
    @redis.cli("CONFIG", "SET", "min-replicas-to-write", "0")
  end

  def keep(engine, text, channel = "kept")
    assert(engine.publish(channel, text, TERMS_OF_RULE) { |result| @answers << result })
  end

  def publish(engine, text)
    keep(engine, text)
    answer
  end

  # Every tenth one is refused.
  # @return [Array<String>] the others
  def mixed(engine)
    all = Array.new(300, &:to_s)
    all.each { |text| keep(engine, text, text.end_with?("5") ? "bad" : "kept") }
    all.reject { |text| text.end_with?("5") }
  end

  def answer
    Timeout.timeout(PATIENCE) { @answers.pop }
  end

  def texts(channel)
    @redis.cli("XRANGE", "{rondo}:s:#{channel}", "-", "+").lines.map(&:chomp).each_cons(2).filter_map { |name, text| text if name == "m" }
  end
end
