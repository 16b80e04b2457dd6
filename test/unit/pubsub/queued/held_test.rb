# frozen_string_literal: true

# Messages that a store does not take now: their order, when they are tried again, and the room that they leave.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/queued/held"
require "stringio"

class HeldTest < Minitest::Test
  Queued = Rondo::PubSub::Queued

  class Entry < Queued::Outbox::Entry
    attr_accessor :number
  end

  def setup
    @now = 100.0
    @log = StringIO.new
    @outbox = Queued::Outbox.new(20, 2000, on_lost: ->(entry) { flunk entry.inspect }, clock: -> { @now })
    @held = Queued::Held.new(@outbox, "NATS", Rondo::Logger.new(io: @log), clock: -> { @now })
  end

  # Of six that were sent at once, two were stored.
  def test_they_go_one_by_one_and_in_their_order
    entries = send_all(6)
    [2, 0, 5, 4].each { |index| @held.refused(entries[index], "JetStream: no room.") }
    [1, 3].each { |index| done(entries[index]) }
    more = Array.new(2) { |index| push(7 + index) }.each { |entry| @held.add(@outbox.shift { true } || flunk(entry.inspect)) }
    assert_nil @held.shift(true), "there is a pause"
    wait
    assert_nil @held.shift(false), "another one is under way"
    [0, 2, 4, 5].each do |index|
      assert_same entries[index], @held.shift(true)
      assert_nil @held.shift(false)
      done(entries[index])
    end
    refute_predicate @held, :on?
    more.each { |entry| assert_same entry, @held.shift(false), "the stream takes messages" }
    assert_equal ["! NATS: JetStream: no room; messages of channels with a rule wait\n",
                  "* NATS takes messages of channels with a rule again after"], [@log.string.lines.first, @log.string.lines.last[/.* after/]]
    assert_equal 2, @log.string.lines.size
  end

  def test_the_end_of_the_process_does_not_wait_for_a_pause
    entry, = send_all(1)
    @held.hurry
    @held.refused(entry, "no room")
    assert_nil @held.shift(true)
    @held.hurry
    assert_same entry, @held.shift(true)
  end

  def test_the_pause_grows_and_begins_anew_when_one_is_stored
    entries = send_all(3)
    entries.each { |entry| @held.refused(entry, "no room") }
    pauses = Array.new(12) do
      wait.tap do
        assert_same entries[0], @held.shift(true)
        @held.refused(entries[0], "no room")
      end
    end
    assert_includes 0.05..0.1, pauses.first, "three answers are one attempt"
    assert_includes 2.5..5.0, pauses.last
    wait
    done(@held.shift(true))
    assert_equal 0, @held.pause
    assert_same entries[1], @held.shift(true)
    @held.refused(entries[1], "no room")
    assert_includes 0.1..0.2, @held.pause
    assert_equal 1, @log.string.lines.size
  end

  # They are in the outbox again, and go on where they were.
  def test_without_a_connection_nothing_is_tried
    entry, = send_all(1)
    @held.refused(entry, "no room")
    @outbox.requeue(@held.entries.map { |each| [each, true] })
    @held.clear
    assert_nil @held.pause
    assert_nil @held.shift(true)
    assert_predicate @held, :on?
    @held.add(@outbox.shift { true })
    wait
    done(@held.shift(true))
    assert_equal [false, 0], [@held.on?, @outbox.count]
  end

  # A server that answers nothing would have stopped.
  def test_presence_goes_on
    entry, = send_all(1)
    @now += 3
    refute push(50, passing: true), "there is no answer"
    @held.refused(entry, "no room")
    3.times do
      @now += 60
      assert(beat = push(50, passing: true))
      @outbox.shift { true }
      @outbox.done(beat)
    end
    @held.shift(true)
    assert push(50, passing: true), "it is under way since now"
    @now += 3
    refute push(50, passing: true), "there is no answer"
  end

  # What is set aside does not keep its part for ever.
  def test_others_have_a_part_of_the_room
    entries = send_all(15)
    entries.first(14).each { |entry| @held.refused(entry, "no room") }
    refute_predicate @outbox, :crowded?
    @held.refused(entries.last, "no room")
    assert_predicate @outbox, :crowded?
    @outbox.requeue(@held.entries.map { |each| [each, true] })
    refute_predicate @outbox, :crowded?
  end

  private

  def send_all(count)
    Array.new(count) { |index| push(index + 1) }.each { @outbox.shift { true } }
  end

  def push(number, passing: false)
    entry = Entry.new("m", true, nil, passing: passing)
    entry.number = number
    entry if @outbox.push(entry)
  end

  def done(entry)
    @held.settled(entry)
    @outbox.done(entry)
  end

  # @return [Float] seconds until the next attempt
  def wait
    @held.pause.tap { |pause| @now += pause }
  end
end
