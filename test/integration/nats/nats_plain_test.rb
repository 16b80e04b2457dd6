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

  # In a program that is no server.
  def test_who_publishes_is_told_that_nats_has_it
    Rondo::PubSub.default = @engine
    assert_equal true, Rondo.publish("c", "1", confirm: PATIENCE)
    heard = Thread::Queue.new
    assert_equal true, Rondo.publish("c", "2", confirm: PATIENCE) { |result| heard << [result, Rondo.publish("c", "3")] }
    assert_equal [true, true], Timeout.timeout(PATIENCE) { heard.pop }
    @nats.kill
    assert_equal false, Rondo.publish("c", "4", confirm: 0.1)
  ensure
    Rondo::PubSub.detach(@engine)
  end

  # No server had said yet how much it takes. NATS would close the connection.
  def test_a_message_that_is_too_long_does_not_hold_up_others
    @nats.kill
    late = engine
    late.subscribe("c", false)
    heard = Thread::Queue.new
    assert late.publish("c", "x" * ((1 << 20) + 1)) { |result| heard << result }
    assert late.publish("c", "x" * (1 << 20)) { |result| heard << result }
    assert late.publish("c", "short")
    @nats.start
    assert_equal [false, true], Array.new(2) { Timeout.timeout(PATIENCE) { heard.pop } }
    assert_equal [1 << 20, 5], take(2).map { |_, message| message.bytesize }
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
