# frozen_string_literal: true

# When somebody who waits for a message in JetStream is told what.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/nats/stream"

class AwaitedTest < Minitest::Test
  Kept = Rondo::PubSub::Nats::Kept
  SOMEBODY = -> {}

  def setup
    @told = []
    @awaited = Rondo::PubSub::Nats::Awaited.new(self)
  end

  def tell(entry, result)
    @told << [entry.number, result]
  end

  def test_both_must_have_come
    one, two = sent(1, 2)
    @awaited.read(1, 77)
    assert_empty @told
    @awaited.stored(one, 5, "d1", false)
    @awaited.stored(two, 6, "d1", false)
    assert_equal [[1, 77]], @told
    @awaited.read(2, 78)
    assert_equal [[1, 77], [2, 78]], @told
    refute_predicate @awaited, :any?
  end

  def test_a_message_that_is_void_goes_on_with_another_number
    one, two = sent(1, 2)
    @awaited.stored(one, 5, "d1", false)
    assert_equal [SOMEBODY, SOMEBODY], [@awaited.take(1), @awaited.take(2)]
    assert_nil one.block
    @awaited.stored(two, 6, "d1", false)
    refute_predicate @awaited, :any?
    assert_nil @awaited.take(3)
    assert_empty @told
  end

  # It was removed before this server came to read it.
  def test_a_message_that_is_never_read_is_there_all_the_same
    one, two, three = sent(1, 2, 3)
    @awaited.stored(one, 5, "d1", true)
    assert_equal [[1, true]], @told
    @awaited.stored(two, 6, "d1", false)
    @awaited.stored(three, 7, "d2", false)
    @awaited.passed(5, "d1")
    @awaited.passed(6, "d2")
    assert_equal [[1, true], [3, true], [2, true]], @told
  end

  def test_what_the_stream_has_lost_is_not_confirmed
    one, two, three = sent(1, 2, 3)
    @awaited.stored(one, 5, "d1", false)
    @awaited.stored(two, 6, "d1", false)
    @awaited.lost(5)
    assert_equal [[2, false]], @told
    @awaited.drop(three)
    assert_equal 1, @awaited.unread
  end

  def test_a_reader_that_does_not_bring_it_is_given_up_once
    one, = sent(1)
    assert_nil @awaited.patience("d1")
    @awaited.stored(one, 5, "d1", false)
    assert_operator @awaited.patience("d1"), :>, 0
    assert_nil @awaited.patience("d2")
  end

  private

  def sent(*numbers)
    numbers.map do |number|
      entry = Kept.new("x", true, SOMEBODY)
      entry.number = number
      @awaited.add(entry)
      entry
    end
  end
end
