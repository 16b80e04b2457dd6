# frozen_string_literal: true

# The engine of examples/nats against a real NATS: the requirements that every engine has to meet.
# SPDX-License-Identifier: MIT

require_relative "outlet_case"
require "support/nats_server"
require_relative "../../../examples/nats/engine"

class NatsEngineTest < OutletCase
  def setup
    super
    @nats = NatsServer.new
    @engine = NatsEngine.new(@nats.url)
    @engines << @engine
  end

  def teardown
    super
    @nats.close
  end

  def test_messages_come_back_in_order
    @engine.subscribe("a b", false)
    @engine.subscribe("*", true)
    sent = (1..100).map { |number| ["a b", number.to_s] } + [["\xff.*", "\xff\0".b], ["\u00e4", "\u00e4"]]
    sent.each { |channel, message| assert @engine.publish(channel, message) }
    assert_equal sent, take(sent.size)
  end

  def test_two_machines
    other = NatsEngine.new(@nats.url)
    @engines << other
    other.subscribe("c", false)
    other.publish("c", "own")
    take(1)
    @engine.publish("c", "from the other")
    assert_equal [["c", "from the other"]], take(1)
  end

  def test_a_nats_that_comes_later
    @nats.kill
    late = NatsEngine.new(@nats.url)
    @engines << late
    late.subscribe("c", false)
    assert late.publish("c", message = +"early")
    message << " and changed"
    @nats.start
    assert_equal [%w[c early]], take(1)
  end

  def test_nothing_comes_after_the_last_subscriber
    @engine.subscribe("c", false)
    @engine.publish("c", "1")
    assert_equal [%w[c 1]], take(1)
    @engine.unsubscribe("c", false)
    @engine.publish("c", "2")
    @engine.subscribe("c", false)
    @engine.publish("c", "3")
    assert_equal [%w[c 3]], take(1)
  end

  def test_after_close_nothing_is_taken
    @engine.publish("c", "1")
    @engine.close
    refute @engine.publish("c", "2")
  end
end
