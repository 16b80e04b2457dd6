# frozen_string_literal: true

# Which engine gets a message, and how engines learn of subscriptions.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "stringio"
require "support/stuck_engine"

class EnginesTest < Minitest::Test
  P = Rondo::PubSub

  # It has the interface, but no class of Rondo as its parent.
  class Told
    attr_reader :said

    def initialize
      @said = []
    end

    def subscribe(channel, is_pattern)
      @said << ["+", channel, is_pattern]
      raise "my own fault" if channel == "bad"
    end

    def unsubscribe(channel, is_pattern) = @said << ["-", channel, is_pattern]

    def publish(channel, message)
      @said << [channel, message]
      nil
    end
  end

  class Stuck < Told
    prepend StuckEngine
  end

  # After this, every engine has been called, except one that is stuck.
  def settled
    assert P.flush(30)
    @engine.said
  end

  def setup
    @engine = Told.new
    @interests = []
    @cores = P.instance_variable_get(:@cores) # servers of other tests in the same process
    P.instance_variable_set(:@cores, [])
    interests = @interests
    P.singleton_class.alias_method(:interests_of_servers, :interests)
    P.define_singleton_method(:interests) { interests }
    P.log = Rondo::Logger.new(io: @log = StringIO.new)
  end

  def teardown
    P.detach(@engine)
    P.instance_variable_set(:@cores, @cores)
    P.singleton_class.alias_method(:interests, :interests_of_servers)
    P.singleton_class.remove_method(:interests_of_servers)
    P.log = nil
  end

  def test_an_engine_hears_of_what_there_is_then_of_what_changes
    @interests.push(["a", false], ["a", true])
    P.attach(@engine)
    P.attach(@engine)
    P.interest("b", false, true) { true }
    settled
    P.interest("a", true, false) { true }
    settled
    P.detach(@engine)
    P.interest("c", false, true) { true }
    assert_equal [["+", "a", false], ["+", "a", true], ["+", "b", false], ["-", "a", true]], settled
  end

  def test_what_is_published_comes_after_the_subscriptions_before_it
    P.attach(@engine)
    expected = Array.new(100) do |number|
      P.interest("c#{number}", false, true) { true }
      P.publish("c#{number}", "mine", @engine)
      [["+", "c#{number}", false], ["c#{number}", "mine"]]
    end
    assert_equal expected.flatten(1), settled
  end

  def test_a_publish_waits_for_no_engine_that_is_stuck
    engine = Stuck.new
    P.attach(engine)
    P.interest("c", false, true) { true }
    engine.began.pop
    assert Thread.new { P.publish("c", "late", engine) }.join(30), "a publish waits for the engine"
    assert_equal [["+", "c", false], %w[c late]], engine.said
  ensure
    engine.gate.close
    P.detach(engine)
  end

  def test_nothing_is_told_twice
    @interests.push(["a", false])
    P.attach(@engine)
    P.interest("a", false, true) { true }
    P.interest("other", false, false) { true }
    assert_equal [["+", "a", false]], settled
  end

  def test_reset_tells_all_again
    @interests.push(["a", false], ["p*", true])
    P.attach(@engine)
    settled
    P.reset(@engine)
    assert_equal [["+", "a", false], ["+", "p*", true]] * 2, settled
    P.reset(Told.new)
  end

  def test_nobody_waits_for_an_engine_that_is_stuck
    engine = Stuck.new
    @interests.push(["a", false], ["b", false])
    assert Thread.new { P.attach(engine) }.join(30), "attach waits for the engine"
    engine.began.pop
    P.attach(@engine)
    assert Thread.new { P.interest("c", false, true) { true } }.join(30), "a subscriber waits for the engine"
    Thread.pass until @engine.said.size == 3
    refute P.flush(0)
    assert Thread.new { P.detach(engine) }.join(30), "detach waits for the engine"
    engine.gate.close
    settled
    assert_equal [["+", "a", false]], engine.said
    assert_empty @log.string
  ensure
    engine.gate.close
  end

  def test_an_engine_that_was_stuck_is_told_how_things_are_then
    engine = Stuck.new
    P.attach(engine)
    P.interest("a", false, true) { true }
    engine.began.pop
    P.interest("a", false, false) { true }
    1000.times { |n| P.interest("guest #{n}", false, true) { true } }
    1000.times { |n| P.interest("guest #{n}", false, false) { true } }
    P.interest("b", true, true) { true }
    engine.gate.close
    settled
    assert_equal [["+", "a", false], ["-", "a", false], ["+", "b", true]], engine.said
  ensure
    engine.gate.close
    P.detach(engine)
  end

  def test_an_error_of_an_engine_harms_nobody
    P.attach(@engine)
    P.interest("bad", false, true) { true }
    P.interest("good", false, true) { true }
    assert_equal [["+", "bad", false], ["+", "good", false]], settled
    assert_match(/EnginesTest::Told#subscribe: .*my own fault/, @log.string)
    @engine.define_singleton_method(:publish) { |*| raise "also my fault" }
    refute Rondo.publish("c", "x", @engine)
    assert_match(/EnginesTest::Told#publish: .*also my fault/, @log.string)
  end

  def test_who_gets_a_message
    refute Rondo.publish("c", "nobody serves here")
    refute Rondo.publish(:c, "to one engine", @engine)
    P.default = @engine
    refute Rondo.publish(:c, { "a" => 1 })
    refute Rondo.publish("c", "here", false)
    refute Rondo.publish("c", "cluster", P::CLUSTER)
    P.detach(@engine)
    assert_same P::CLUSTER, P.default
    assert_equal [["c", "to one engine"], ["c", '{"a":1}']], @engine.said
  end

  def test_what_is_no_engine_no_channel_no_message
    assert_match(/must respond to unsubscribe, publish/, assert_raises(ArgumentError) { P.attach(Class.new { def subscribe(*); end }.new) }.message)
    assert_raises(TypeError) { Rondo.publish(1, "x", @engine) }
    assert_raises(ArgumentError) { Rondo.publish("", "x", @engine) }
    assert_raises(TypeError) { Rondo.publish("c", 1, @engine) }
    assert_raises(ArgumentError) { Rondo.publish("c", "\xff", @engine) }
  end

  def test_the_base_class_is_an_engine_that_only_cannot_publish
    engine = P::Engine.new
    P.attach(engine)
    assert_equal 0, engine.flush(1)
    assert_raises(NotImplementedError) { Rondo.publish("c", "x", engine) }
  ensure
    P.detach(engine)
  end
end
