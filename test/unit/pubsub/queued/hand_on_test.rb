# frozen_string_literal: true

# What an engine hands on when its process becomes another program (lib/rondo/pubsub/queued): messages as they were
# published, in their order, and the numbers under which they are written once.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/redis_streams"
require "rondo/pubsub/relay_frames"
require "stringio"
require "support/held_port"

class HandOnTest < Minitest::Test
  TERMS = Rondo::PubSub::Queued::Terms.new(10, 0, nil)
  # Channel, message.
  MESSAGES = [["news", "text"], ["news", "\xFF\r\n$3".b], ["a b:\r\nü", "grüß"], ["news", "\0rondo 1 2 3 t\nfoo"], ["news", ""]].freeze

  def setup
    @port = HeldPort.new
    @engines = []
  end

  def teardown
    @engines.each { |engine| engine.close(0) }
    @port.close
  end

  def test_messages_are_handed_on_as_they_were_published
    [redis, redis(kept: true), redis(kept: true, prefix: "shop"), nats, nats(jetstream: true)].each do |engine|
      MESSAGES.each { |channel, message| assert engine.publish(channel, message) }
      engine.publish("\0rondo:presence:x", "of no use later")
      assert_equal MESSAGES.map { |channel, message| [channel, message, 0] }, handed_on(engine)
      assert_equal 0, engine.queued
    end
  end

  def test_messages_that_are_kept_keep_their_numbers
    [-> { redis(kept: true) }, -> { nats(jetstream: true) }].each do |make|
      engine = make.call
      MESSAGES.each { |channel, message| assert engine.publish(channel, message, TERMS) }
      given = handed_on(engine)
      assert_equal MESSAGES.map { |channel, message| [channel, message] }, given.map { |each| each.first(2) }
      numbers = given.map(&:last)
      assert_equal numbers.sort.uniq, numbers

      second = make.call
      second.lineage = engine.lineage
      assert second.publish_again("news", "plain", TERMS, 0) if second.is_a?(Rondo::PubSub::RedisStreams)
      assert second.publish_again("news", "again", TERMS, numbers[2])
      assert second.publish("news", "new", TERMS)
      assert second.publish_again("news", "of nobody", TERMS, numbers.last + 100)
      again, *new = handed_on(second).map(&:last) - [0]
      assert_equal numbers[2], again
      assert_operator new.min, :>, numbers.last
      assert_equal new.uniq, new
    end
  end

  # A number of somebody else says that a message was written which was not.
  def test_without_the_name_numbers_say_nothing
    [redis(kept: true), nats(jetstream: true)].each do |engine|
      [nil, "", "0123:1", "0123456789abcdef", "0123456789abcdef:1:2", "0123456789abcdefg:1"].each { |name| engine.lineage = name }
      assert engine.publish_again("news", "one", TERMS, 500)
      assert engine.publish_again("news", "two", TERMS, 0)
      assert_equal [1, 2], handed_on(engine).map(&:last)
    end
  end

  # Redis would take the lower number for written.
  def test_a_number_of_before_does_not_count_behind_a_new_one
    engine = redis(kept: true)
    engine.lineage = "0123456789abcdef:7"
    assert engine.publish("news", "new", TERMS)
    assert engine.publish_again("news", "again", TERMS, 3)
    assert_equal [8, 9], handed_on(engine).map(&:last)
  end

  # A block of the configuration may have published before it gives the engine away.
  def test_who_has_published_keeps_its_name
    [redis(kept: true), nats(jetstream: true)].each do |engine|
      engine.publish("news", "one", TERMS)
      before = engine.lineage
      engine.lineage = "0123456789abcdef:7"
      assert_equal before, engine.lineage
    end
  end

  # No program could be executed.
  def test_an_engine_that_has_handed_on_begins_anew
    [redis(kept: true), nats(jetstream: true)].each do |engine|
      engine.publish("news", "one", TERMS)
      (_, _, number), = handed_on(engine)
      assert engine.publish_again("news", "one", TERMS, number)
      assert engine.publish("news", "two", TERMS)
      assert_equal [["one", number], ["two", number + 1]], handed_on(engine).map { |each| each.drop(1) }
    end
  end

  def test_commands_and_what_there_is_no_room_for_are_lost
    engine = redis
    3.times { |number| engine.publish("news", number.to_s) }
    replies = Queue.new
    engine.cmd("SET", "key", 1) { |reply| replies << reply }
    assert_equal [2, 2], engine.hand_on { |_, message, _| message != "1" }
    assert_kind_of Rondo::PubSub::Redis::Error, replies.pop
  end

  def test_a_note_has_the_number
    [0, 1, (16**15) - 1].each do |number|
      note = Rondo::PubSub::RelayFrames.returned(number)
      assert_equal [16, number], [note.bytesize, Rondo::PubSub::RelayFrames.number_of(note)]
    end
    assert_nil Rondo::PubSub::RelayFrames.number_of("0000000100000002")
    assert_nil Rondo::PubSub::RelayFrames.number_of(nil)
  end

  private

  def redis(kept: false, **options)
    type = kept ? Rondo::PubSub::RedisStreams : Rondo::PubSub::Redis
    add(type.new("redis://127.0.0.1:#{@port.number}", log: Rondo::Logger.new(io: StringIO.new), **options))
  end

  def nats(**options)
    add(Rondo::PubSub::Nats.new("nats://127.0.0.1:#{@port.number}", log: Rondo::Logger.new(io: StringIO.new), **options))
  end

  def add(engine)
    engine.hub_link = Object.new if engine.respond_to?(:hub_link=) # it is told the terms
    @engines << engine
    engine
  end

  def handed_on(engine)
    given = []
    counts = engine.hand_on { |*words| given << words }
    assert_equal [given.size, 0], counts
    given.each { |_, message, _| assert_equal Rondo::PubSub::RelayFrames.text?(message), message.encoding == Encoding::UTF_8 }
  end
end
