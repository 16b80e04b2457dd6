# frozen_string_literal: true

# An engine behind a hub; the test is the hub. The calls of the engine, the messages it publishes, a hub that goes, and
# a hub that does not read.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/engine_link"
require "socket"
require "stringio"
require "timeout"

class EngineLinkTest < Minitest::Test
  PATIENCE = 60
  Frames = Rondo::PubSub::RelayFrames

  class Notes < Rondo::PubSub::Engine
    attr_reader :told

    def initialize
      super
      @told = Thread::Queue.new
    end

    def subscribe(channel, is_pattern)
      @told << [:subscribe, channel, is_pattern]
      raise "my own fault" if channel == "bad"
    end

    def unsubscribe(channel, is_pattern)
      @told << [:unsubscribe, channel, is_pattern]
    end

    def publish(channel, message)
      @told << [:publish, channel, message]
    end
  end

  def setup
    @hub, socket = UNIXSocket.pair
    @engine = Notes.new
    @log = StringIO.new
    @link = Rondo::PubSub::EngineLink.new(@engine, socket, Rondo::Logger.new(io: @log)).start
  end

  def teardown
    @link.close
    @hub.close
  end

  def test_the_engine_is_told_what_the_hub_says
    @hub.write(interest(1, "c"), interest(1, "bad"), interest(1, "p*", 2), Frames.publish("c", "m"), interest(2, "p*", 2))
    assert_equal [[:subscribe, "c", false], [:subscribe, "bad", false], [:subscribe, "p*", true], [:publish, "c", "m"],
                  [:unsubscribe, "p*", true]], Array.new(5) { pop(@engine.told) }
    assert_match(/my own fault/, @log.string)
  end

  def test_the_hub_gets_what_the_engine_hands_on
    assert_raises(TypeError) { Rondo::PubSub::PROCESS.publish("c", 1) }
    assert Rondo::PubSub::PROCESS.publish(:c, "from outside")
    assert_raises(ArgumentError) { Rondo::PubSub::PROCESS.publish("c" * 2000, "too long a name") }
    expected = Frames.publish("c", "from outside")
    assert_equal expected, Timeout.timeout(PATIENCE) { @hub.read(expected.bytesize) }
  end

  def test_a_hub_that_does_not_read_costs_bounded_memory_and_nobodys_time
    big = "x" * (1 << 20)
    sent = Array.new(80) { Rondo::PubSub::PROCESS.publish("c", big) }
    assert sent.first
    assert_includes sent, false
    frame = Frames.publish("c", big)
    sent.count(true).times { assert_equal frame, Timeout.timeout(PATIENCE) { @hub.read(frame.bytesize) } }
    assert Rondo::PubSub::PROCESS.publish("c", "again")
  end

  def test_nonsense_of_the_hub_ends_the_link
    @hub.write("\xff" * 16)
    assert_nil Timeout.timeout(PATIENCE) { @hub.read(1) }
    @link.close
    assert_match(/lost its connection to the hub: a frame of type 255/, @log.string)
    assert_nil Rondo::PubSub.outlet
  end

  def test_a_hub_that_goes
    @hub.shutdown
    @link.close
    refute @link.publish_here("c", "x")
  end

  # Whatever the engine still has for it.
  def test_a_hub_that_ends_in_order_is_no_lost_connection
    @link.expect_end
    fill = Array.new(3) { Rondo::PubSub::PROCESS.publish("c", "x" * (1 << 20)) }
    @hub.close
    Timeout.timeout(PATIENCE) { Thread.pass while @link.publish_here("c", "y") }
    @link.close
    assert_equal [[true] * 3, ""], [fill, @log.string]
  end

  def test_an_engine_that_is_stuck_ends_with_the_link
    gate = Thread::Queue.new
    began = Thread::Queue.new
    @engine.define_singleton_method(:publish) { |*| (began << true) && gate.pop }
    @hub.write(Frames.publish("c", "m"))
    pop(began)
    assert Thread.new { @link.finish(0) }.join(30), "waits for the engine"
    assert_nil Timeout.timeout(PATIENCE) { @hub.read(1) }
    assert_equal "! EngineLinkTest::Notes did not finish in time: the messages that it still had are lost\n", @log.string
  ensure
    gate.close
  end

  # What it has not read when the time is over is lost, and a line says so.
  def test_an_engine_that_is_slow
    began = Thread::Queue.new
    link = @link
    @engine.define_singleton_method(:publish) do |*|
      began << true
      Thread.pass until link.instance_variable_get(:@ended)
    end
    @hub.write(Frames.publish("c", "m"))
    pop(began)
    assert Thread.new { @link.finish(0) }.join(PATIENCE)
    assert_equal "! EngineLinkTest::Notes did not take all messages in time: those in the hub are lost\n", @log.string
  end

  private

  def interest(type, channel, flags = 0)
    [type, flags, channel.bytesize, 0, 0].pack("CCnNQ>") + channel
  end

  def pop(queue)
    Timeout.timeout(PATIENCE) { queue.pop }
  end
end
