# frozen_string_literal: true

# What has no answer yet, and what is of no use later: it has a part of the room, and does not wait for a server that
# answers nothing.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/queued/outbox"

class PassingTest < Minitest::Test
  Outbox = Rondo::PubSub::Queued::Outbox
  Entry = Outbox::Entry

  def setup
    @now = 0.0
    @outbox = Outbox.new(20, 200, on_lost: ->(entry) { flunk entry.inspect }, clock: -> { @now })
  end

  def test_a_crowd_of_passing_entries_leaves_room
    5.times { assert @outbox.push(passing) }
    refute @outbox.push(passing)
    15.times { assert @outbox.push(plain) }
    refute @outbox.push(plain)
  end

  def test_long_ones_leave_room
    assert @outbox.push(passing("x" * 40))
    refute @outbox.push(passing("x" * 20))
    assert @outbox.push(passing("x" * 10))
    assert @outbox.push(plain("x" * 150))
  end

  # One that is sent at once may have any length: nothing waits behind it.
  def test_one_alone_is_taken
    assert @outbox.push(passing("x" * 200))
  end

  def test_nothing_passing_waits_behind_a_server_that_answers_nothing
    assert @outbox.push(first = passing)
    @now = 1.9
    assert @outbox.push(passing)
    @now = 2.0
    refute @outbox.push(passing)
    assert @outbox.push(plain)
    @outbox.done(@outbox.shift { true })
    assert @outbox.push(passing), "it has answered #{first}"
    @now = 4.0
    refute @outbox.push(passing)
  end

  # It was empty for long.
  def test_the_time_begins_with_the_first_entry
    @now = 100.0
    assert @outbox.push(passing)
    assert @outbox.push(passing)
  end

  # What a server refused for now says nothing of others.
  def test_what_waits_aside_holds_up_nothing_passing
    2.times { @outbox.push(plain) and @outbox.set_aside(@outbox.shift { true }) }
    @now = 100.0
    assert @outbox.push(passing)
    @now = 102.0
    refute @outbox.push(passing)
  end

  def test_what_is_passing_is_not_sent_again
    sent = [passing, plain].each { |entry| @outbox.push(entry) and @outbox.shift { true } }
    waiting = [passing, plain].each { |entry| @outbox.push(entry) }
    @outbox.requeue(sent.map { |entry| [entry, true] })
    assert_equal 2, @outbox.count
    [sent.last, waiting.last].each { |entry| assert_same entry, @outbox.shift { true } }
    assert_nil(@outbox.shift { true })
    5.times { assert @outbox.push(passing) }
  end

  private

  def passing(text = "p") = Entry.new(text, true, nil, passing: true)
  def plain(text = "m") = Entry.new(text, true, nil)
end
