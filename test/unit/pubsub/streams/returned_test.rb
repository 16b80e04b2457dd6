# frozen_string_literal: true

# Messages that Redis did not take, and will: their order, and when they go again. Covers streams/returned.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/streams_model"
require "stringio"

class StreamsReturnedTest < Minitest::Test
  Streams = StreamsModel::Streams
  OOM = StreamsModel::OOM
  EARLY = "EARLY a message before this one is missing"
  IN_A_SCRIPT = "OOM command not allowed. script: a3bcac89440d3543a721ca82d049e12d222fa38a, on @user_script:22."
  BEFORE_7 = "ERR Error running script (call to f_a3bcac89440d): @user_script:22: -OOM command not allowed."

  def setup
    @now = 0.0
    @log = StringIO.new
    @returned = Streams::Returned.new(StreamsModel::Room.new, "Redis at x", Rondo::Logger.new(io: @log), clock: -> { @now })
    @entries = Array.new(6) { |number| Streams::Kept.new("", true, nil, 0).tap { |entry| entry.number = number + 1 } }
  end

  def test_which_refusals_mean_the_same_connection
    [OOM, EARLY, IN_A_SCRIPT, BEFORE_7, "NOREPLICAS x", "MISCONF x", "BUSY x"].each { |text| assert Streams::Returned.takes?(text), text }
    ["WRONGTYPE x", "NOPERM x", "ERR EARLY", "READONLY x", "NOSCRIPT x", "LOADING x"].each { |text| refute Streams::Returned.takes?(text), text }
    ["READONLY x", "LOADING x", "NOSCRIPT x", "MOVED 1 a:1", "ASK 1 a:1", "ERR -READONLY x"].each do |text|
      assert Streams::Publisher::ELSEWHERE.match?(text), text
    end
    [OOM, EARLY, "WRONGTYPE x", "ERR MOVED"].each { |text| refute Streams::Publisher::ELSEWHERE.match?(text), text }
  end

  # What is on its way may still come back, so nothing goes before that.
  def test_order
    go(*@entries.first(3))
    @returned.back(@entries[0], OOM)
    assert_equal [false, false], @entries[3, 2].map { |entry| @returned.pass?(entry) }
    @now = 10.0
    assert_nil @returned.next
    @returned.back(@entries[1], EARLY)
    refute @returned.pass?(@entries[5])
    @returned.back(@entries[2], EARLY)
    assert_equal @entries, @returned.held
    assert_nil @returned.pause
    assert_same @entries.first, @returned.next
  end

  # The pause ends after it was asked what may go first.
  def test_new_ones_wait_behind_those_that_came_back
    go(@entries.first)
    @returned.back(@entries.first, OOM)
    assert_nil @returned.next
    @now = 10.0
    refute @returned.pass?(@entries[1])
    assert_equal 0, @returned.pause
    assert_same @entries.first, @returned.next
  end

  # One that is written makes room for two.
  def test_one_goes_alone_and_then_more
    go(*@entries.first(4))
    @entries.first(4).each { |entry| @returned.back(entry, entry.number == 1 ? OOM : EARLY) }
    @now = 10.0
    assert_equal [1, [2, 3], [4]], [take.first.number, take.map(&:number), take.map(&:number)]
    assert @returned.pass?(@entries[4])
  end

  def test_pauses_grow_up_to_a_limit_and_begin_anew
    pauses = Array.new(10) { |round| pause_after(round.zero? ? IN_A_SCRIPT : OOM) }
    assert_operator pauses.first, :<=, 0.1
    assert_operator pauses[3], :>, pauses.first
    assert_operator pauses.max, :<=, 5.0
    assert_operator pauses.last, :>=, 2.5
    @returned.answered if @returned.sent
    @returned.over
    assert_operator pause_after(OOM), :<=, 0.1
    assert_equal ["! Redis at x does not write now: OOM command not allowed; messages of channels with a history wait",
                  "* Redis at x writes again after 30.0 s"], @log.string.lines.first(2).map(&:chomp).map { |line| line.sub(/\d\d\.\d s/, "30.0 s") }
    assert_equal 3, @log.string.lines.size
  end

  # Before version 7 Redis says it otherwise.
  def test_a_refusal_without_its_place
    pause_after(BEFORE_7)
    assert_match(/now: OOM command not allowed; messages/, @log.string)
  end

  # It was refused for good: what came back behind it goes at once, without a line.
  def test_what_came_early_does_not_wait
    go(*@entries.first(2))
    @returned.answered
    @returned.back(@entries[1], EARLY)
    assert_nil @returned.pause
    assert_same @entries[1], @returned.next
    assert_empty @log.string
  end

  def test_the_end_of_a_pause
    assert_nil @returned.hurry
    assert_operator pause_after(OOM, is_over: false), :>, 0
    @returned.hurry
    assert_equal 0, @returned.pause
    assert_same @entries.first, @returned.next
    assert_nil @returned.pause
  end

  # Another node may be the master then. The answer is of use only when a message may go.
  def test_when_another_node_is_looked_for
    pause_after(OOM)
    refute @returned.unsure?
    @returned.next
    go(@entries.first)
    @returned.back(@entries.first, "NOREPLICAS x")
    refute @returned.unsure?
    @now += 10
    assert @returned.unsure?
    @returned.next
    refute @returned.unsure?
  end

  def test_what_is_unanswered_with_what_is_held
    pings = [["PING", true]]
    assert_same pings, @returned.among(pings)
    go(*@entries.first(3))
    @returned.back(@entries[0], OOM)
    @returned.pass?(@entries[3])
    rows = [[@entries[1], true], ["PING", true], [@entries[2], false]]
    assert_equal [1, 2, 3, 4, "PING"], @returned.among(rows).map { |entry, _| entry.is_a?(String) ? entry : entry.number }
    @returned.forget_link
    assert_same rows, @returned.among(rows)
    refute @returned.pass?(@entries[4]), "it still does not write"
  end

  private

  def go(*entries)
    entries.each do |entry|
      assert @returned.pass?(entry)
      @returned.sent
    end
  end

  # All that may go, and Redis writes it.
  def take
    taken = []
    while (entry = @returned.next)
      @returned.sent
      taken << entry
    end
    taken.each { @returned.answered }
    @returned.over
    taken
  end

  # One goes, and comes back.
  def pause_after(reason, is_over: true)
    entry = @returned.next || @entries.first
    @returned.sent
    @returned.back(entry, reason)
    @returned.pause.tap { |seconds| @now += seconds if is_over }
  end
end
