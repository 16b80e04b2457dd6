# frozen_string_literal: true

# The Redis engine, and a real Redis that refuses for a while: a script runs for too long, or the disk is broken. What was
# asked meanwhile is done afterwards.
# SPDX-License-Identifier: MIT

require_relative "redis_case"

class RedisBusyTest < RedisCase
  def setup
    super
    @redis = redis("--busy-reply-threshold", "50")
  end

  def test_a_channel_that_is_refused_for_a_while_is_subscribed_afterwards
    engine = connect
    engine.subscribe("early", false)
    while_busy do
      engine.subscribe("late", false)
      wait_for_refusal(engine)
    end
    eventually("both") { %w[early late].all? { |channel| listeners(channel) == 1 } }
    engine.publish("late", "own")
    assert_equal [%w[late own]], take(1)
    @redis.cli("PUBLISH", "late", "of another one")
    assert_equal [["late", "of another one"]], take(1)
  end

  def test_a_pattern_that_is_refused_for_a_while_is_subscribed_afterwards
    engine = connect
    engine.subscribe("early", false)
    while_busy do
      engine.subscribe("late*", true)
      wait_for_refusal(engine)
    end
    eventually("a pattern") { @redis.cli("PUBSUB", "NUMPAT") == "1" }
    engine.publish("later", "own")
    assert_equal [%w[later own]], take(1)
  end

  def test_streams_subscribe_and_publish_afterwards
    engine = Rondo::PubSub::RedisStreams.new(@redis.url, log: log, **TERMS).tap { |each| @engines << each }
    engine.wait_until_connected(PATIENCE)
    engine.subscribe("early", false)
    while_busy do
      engine.subscribe("kept", false, 1)
      engine.publish("kept", "x", Rondo::PubSub::Queued::Terms.new(10, 0, nil))
      engine.publish("kept", "y")
      wait_for_refusal(engine)
    end
    assert_equal [%w[kept x], %w[kept y]], take(2).sort
  end

  # Otherwise Redis would go on sending what nobody here wants.
  def test_a_channel_that_is_left_meanwhile_is_left_afterwards
    engine = connect
    %w[stays goes].each { |channel| engine.subscribe(channel, false) }
    eventually("both") { %w[stays goes].all? { |channel| listeners(channel) == 1 } }
    while_busy do
      engine.unsubscribe("goes", false)
      wait_for_refusal(engine)
    end
    eventually("one") { listeners("stays") == 1 }
    assert_equal 0, listeners("goes")
  end

  def test_messages_that_are_refused_for_a_while_are_sent_afterwards_in_order
    engine = connect
    engine.subscribe("c", false)
    engine.publish("c", "before")
    assert_equal [%w[c before]], take(1)
    answers = Thread::Queue.new
    sent = (1..20).map(&:to_s)
    while_busy do
      sent.each { |message| assert engine.publish("c", message) { |is_there| answers << is_there } }
      wait_for_refusal(engine)
      assert_equal sent.size, engine.queued
    end
    assert_equal sent, take(sent.size).map(&:last)
    assert_equal [true] * sent.size, Array.new(sent.size) { Timeout.timeout(PATIENCE) { answers.pop } }
    assert_equal 1, @log.string.scan("is not available").size, @log.string
  end

  def test_a_command_that_is_refused_says_so
    engine = connect
    answer = Thread::Queue.new
    while_busy do
      engine.cmd("SET", "key", "value") { |reply| answer << reply }
      assert_match(/\ABUSY /, Timeout.timeout(PATIENCE) { answer.pop }.message)
    end
    assert_predicate engine, :connected?
  end

  # Redis subscribes then, and publishes, but refuses PING.
  def test_a_redis_whose_disk_is_broken_still_carries_messages
    @redis = redis("--dir", @disk = Dir.mktmpdir)
    engine = connect
    engine.subscribe("early", false)
    engine.publish("early", "w")
    take(1)
    break_the_disk
    engine.subscribe("c", false)
    engine.publish("c", "x")
    assert_equal [%w[c x]], take(1)
    engine.subscribe("d", false)
    engine.publish("d", "y")
    assert_equal [%w[d y]], take(1)
    refute_includes @log.string, "is not available"
  end

  private

  # A script runs until the block is over.
  def while_busy
    @script = Thread.new { @redis.cli("EVAL", "while true do end", "0") }
    eventually("a script that runs") { @redis.cli("PING").start_with?("BUSY") }
    yield
  ensure
    eventually("the end of the script") { @redis.cli("SCRIPT", "KILL") && @script.join(0.05) }
  end

  def wait_for_refusal(engine)
    eventually("an outage") { @log.string.include?("is not available: BUSY ") && !engine.connected? }
  end

  def listeners(channel)
    @redis.cli("PUBSUB", "NUMSUB", channel).split.last.to_i
  end

  # The folder of the snapshot is gone.
  def break_the_disk
    Dir.rmdir(@disk)
    @redis.cli("CONFIG", "SET", "save", "3600 1")
    @redis.cli("BGSAVE")
    eventually("a refusal") { @redis.cli("PING").start_with?("MISCONF") }
  end
end
