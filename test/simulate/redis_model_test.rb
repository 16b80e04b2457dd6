# frozen_string_literal: true

# The model of Redis (support/streams_model.rb) does what the scripts do in Redis itself: both get the same calls. The
# first id that a publisher knows is an hour ahead, so ids do not depend on the clock of Redis.
# SPDX-License-Identifier: MIT

require "test_helper"
require "redis-client"
require "support/redis_server"
require "support/streams_model"

class RedisModelTest < Minitest::Test
  CALLS = 1500
  CHANNELS = %w[x y].freeze
  TTL = 60_000
  Scripts = StreamsModel::Scripts

  def setup
    @server = RedisServer.new
    config = RedisClient.config(url: @server.url, protocol: 2)
    @redis = config.new_client
    @listener = config.new_client.pubsub
    @listener.call("SUBSCRIBE", *CHANNELS)
    CHANNELS.size.times { @listener.next_event(10) }
    Scripts::ALL.each { |script| @redis.call("SCRIPT", "LOAD", script) }
    @model = StreamsModel::Redis.new(1)
    @model.page = 64
    @wire = StreamsModel::Wire.new(@model) { nil }
    CHANNELS.each { |channel| @model.execute(["SUBSCRIBE", channel], @wire) }
    @wire.answers.clear
    @keys = Scripts::Keys.new(nil)
    @random = Random.new(1)
    @known = (Time.now.to_i + 3600) * 1_000_000
  end

  def teardown
    @redis.close
    @listener.close
    @server.close
  end

  def test_the_model_answers_what_redis_answers
    same("CLOCK", Scripts::CLOCK, @keys.times, [@known])
    CALLS.times { |count| call(count) }
    pushed = Array.new(@wire.answers.size) { @listener.next_event(10).last.b }
    assert_equal @wire.answers.map { |_, words| words.last.b }, pushed
    assert_nil @listener.next_event(0.01)
  end

  # Its stream has one message, which names the one before it: what came between is lost.
  def test_the_script_and_the_model_see_a_loss_before_the_oldest_message_of_a_stream
    2.times { |number| publish_alone(number) }
    last = @model.streams["x"].first
    assert_equal last.id, clock_after_check(last.previous)
    assert_operator clock_after_check(last.previous + 1), :>, last.id
  end

  # Its number is not used up: what follows waits until the publisher knows.
  def test_the_script_and_the_model_refuse_for_good
    @redis.call("SET", @keys.of("x").last, "of another type")
    @model.bad["x"] = "WRONGTYPE"
    publish_number("x", 1, -1, -1)
    publish_number("y", 2, 1, -1)
    publish_number("y", 2, 1, 1)
    %w[next newest].each { |which| same("READ", Scripts::READ, [*@keys.times, *@keys.of("x")], [@known, 0, "+", Scripts::PAGE, which]) }
    assert_equal [0, 1], CHANNELS.map { |channel| @model.ever[channel].size }
  end

  private

  def publish_number(channel, number, before, answered)
    words = [@known += 10, channel, number, before, 0, 9, 0, "t", "text", answered, 0, ""]
    same("PUBLISH", Scripts::PUBLISH, [*@keys.times, @keys.by("p"), *@keys.of(channel)], words)
  end

  # Without room for another message.
  def publish_alone(number)
    words = [@known += 10, "x", number, number - 1, 0, 1, 0, "t", "alone", number - 1, 0, ""]
    same("PUBLISH", Scripts::PUBLISH, [*@keys.times, @keys.by("p"), *@keys.of("x")], words)
  end

  # A Redis that begins anew gives an id.
  def clock_after_check(newest)
    same("CHECK", Scripts::CHECK, [*@keys.times, @keys.by("p"), *@keys.of("x")], [1, 0, 0, newest])
    @model.clock
  end

  def call(count)
    channel = CHANNELS.sample(random: @random)
    case @random.rand(20)
    when 0..9 then publish(channel, count)
    when 10..13 then read(channel)
    when 14 then same("CLOCK", Scripts::CLOCK, @keys.times, [@known])
    when 15 then delete(channel)
    when 16 then flush if @random.rand(10).zero?
    when 17 then @known += @random.rand(2 * TTL * 1000)
    when 18 then check(channel, count)
    end
  end

  def publish(channel, count)
    keys = [*@keys.times, @keys.by("p#{@random.rand(2)}"), *@keys.of(channel)]
    number = (count / 3) + @random.rand(4)
    size = [3, 1000].sample(random: @random)
    words = [@known - @random.rand(3), channel, number, number - 1 - @random.rand(2), @known - 1000, size,
             [0, TTL].sample(random: @random), "t", "text #{count}", number - @random.rand(4), 0, ""]
    same("PUBLISH", Scripts::PUBLISH, keys, words)
  end

  def read(channel)
    after = [@model.streams[channel].sample(random: @random)&.id, 0].compact.sample(random: @random)
    upto = [@model.streams[channel].sample(random: @random)&.id, "+", "+"].compact.sample(random: @random)
    words = [@known, after, upto, [20, Scripts::PAGE].sample(random: @random), %w[next newest].sample(random: @random)]
    same("READ", Scripts::READ, [*@keys.times, *@keys.of(channel)], words)
  end

  def check(channel, count)
    newest, at = Array.new(2) { [*@model.ever[channel].last(3), *@model.streams[channel].last(3)].map(&:id).push(0).sample(random: @random) }
    words = [[1, @known].sample(random: @random), (count / 3) - @random.rand(9), at, newest]
    same("CHECK", Scripts::CHECK, [*@keys.times, @keys.by("p#{@random.rand(2)}"), *@keys.of(channel)], words)
  end

  def delete(channel)
    row = @model.streams[channel].sample(random: @random) or return
    @model.erase(channel) { |each, _| each.equal?(row) }
    @redis.call("XDEL", @keys.of(channel).last, "#{row.id}-0")
  end

  def flush
    @model.flush
    @redis.call("FLUSHALL")
  end

  def same(name, script, keys, words)
    call = Scripts.call(script, keys, words)
    expected = @model.execute(call.map(&:to_s), @wire)
    assert_equal plain(expected), plain(real(call)), "#{name} #{words}"
  end

  def real(call)
    @redis.call(*call)
  rescue RedisClient::CommandError => e
    e
  end

  # A refusal by its first word, all texts as bytes.
  def plain(reply)
    case reply
    when Exception then reply.message[/\A\S+/]
    when Array then reply.map { |each| plain(each) }
    when String then reply.b
    else reply
    end
  end
end
