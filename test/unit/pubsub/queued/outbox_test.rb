# frozen_string_literal: true

# What waits for an engine's server, and what becomes of it when the connection goes.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/queued/outbox"

class OutboxTest < Minitest::Test
  Outbox = Rondo::PubSub::Queued::Outbox

  def setup
    @lost = []
    @outbox = Outbox.new(3, 1000, on_lost: ->(entry) { @lost << entry })
  end

  def test_entries_count_until_they_are_answered
    first, = push("a", "b", "c")
    refute @outbox.push(entry("d"))
    assert_equal first, @outbox.shift { true }
    refute @outbox.push(entry("d"))
    @outbox.done(first)
    assert @outbox.push(entry("d"))
    refute @outbox.push(entry("x" * 1000)), "its bytes are too many"
  end

  def test_the_first_one_waits_for_the_block
    first, = push("a", "b")
    assert_nil(@outbox.shift { |waiting| waiting.equal?(first) ? false : flunk })
  end

  # A message goes again, in its turn; a command that has begun does not.
  def test_what_had_no_answer_when_the_connection_went
    entries = [entry("message"), entry("command", publish: false), entry("begun", publish: false)]
    entries.each { |each| @outbox.push(each) }
    3.times { @outbox.shift { true } }
    @outbox.requeue(entries.zip([true, false, true]))
    assert_equal entries.first(2), Array.new(2) { @outbox.shift { true } }
    assert_equal entries.last(1), @lost
    assert_equal 2, @outbox.count
  end

  # A command has nobody who would get its answer, whether it was begun or not.
  def test_what_another_one_goes_on_with
    entries = [entry("message"), entry("command", publish: false), entry("later")]
    entries.each { |each| @outbox.push(each) }
    2.times { @outbox.shift { true } }
    assert_equal [entries[0], entries[2]], @outbox.take_all([[entries[0], true], [entries[1], false]])
    assert_equal [entries[1]], @lost
    assert_empty @outbox
  end

  # Who deletes one from a list must not delete the other.
  def test_two_of_the_same_bytes_are_two
    refute_equal entry("a"), entry("a")
  end

  private

  def push(*all)
    all.map { |bytes| entry(bytes).tap { |entry| assert @outbox.push(entry) } }
  end

  def entry(bytes, publish: true)
    Outbox::Entry.new(bytes, publish, nil)
  end
end
