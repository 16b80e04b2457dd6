# frozen_string_literal: true

# The engine for NATS without JetStream: the requirements that every engine has to meet.
# SPDX-License-Identifier: MIT

require_relative "../pubsub/outlet_case"
require "support/nats_server"
require "rondo/pubsub/nats"

class NatsPlainTest < OutletCase
  def setup
    super
    @nats = NatsServer.new
    @engine = engine
  end

  def teardown
    super
    @nats.close
  end

  def test_messages_come_back_in_order_and_once
    @engine.subscribe("a b", false)
    @engine.subscribe("*", true)
    @engine.start
    @engine.publish("warm", "up")
    take(1)
    sent = (1..100).map { |number| ["a b", number.to_s] } + [["\xff.*", "\xff\0".b], ["\u00e4", "\u00e4"], ["c", "text".b]]
    sent.each { |channel, message| assert @engine.publish(channel, message) }
    assert_equal sent, take(sent.size)
    @engine.unsubscribe("*", true)
    @engine.publish("a b", "last")
    assert_equal [["a b", "last"]], take(1)
  end

  def test_two_machines
    other = engine
    other.subscribe("c", false)
    other.publish("c", "own")
    take(1)
    @engine.publish("c", "from the other")
    assert_equal [["c", "from the other"]], take(1)
  end

  def test_a_nats_that_comes_later
    @nats.kill
    late = engine
    late.subscribe("c", false)
    assert late.publish("c", message = +"early")
    message << " and changed"
    @nats.start
    assert_equal [%w[c early]], take(1)
  end

  def test_the_queue_has_a_limit
    @nats.kill
    small = engine(queue: 2)
    assert_equal [true, true, false], Array.new(3) { small.publish("c", "x") }
    @nats.start
    assert_equal 0, small.flush(30)
    assert small.publish("c", "y")
  end

  def test_after_close_nothing_is_taken
    assert @engine.publish("c", "1")
    @engine.close
    refute @engine.publish("c", "2")
  end

  private

  def engine(**options)
    Rondo::PubSub::Nats.new(@nats.url, log: Rondo::Logger.new(io: StringIO.new), **options).tap { |engine| @engines << engine }
  end
end
