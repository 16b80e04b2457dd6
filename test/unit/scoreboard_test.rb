# frozen_string_literal: true

# The scoreboard from Ruby: by name, across processes, wrong rows and names.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"

class ScoreboardTest < Minitest::Test
  def test_numbers_by_name
    board = Rondo::Scoreboard.new(2)
    board.set(1, :requests, 2**40)
    assert_equal 2**40, board.get(1, :requests)
    assert_equal 0, board.get(0, :requests)
    assert_equal 2**40, board.row(1)[:requests]
    board.clear(1)
    assert_equal [0], board.row(1).values.uniq
    assert_equal [0], board.histogram(1, :wait).uniq
    assert_equal Rondo::Scoreboard::BOUNDS_US.size + 1, board.histogram(1, :duration).size
    assert_equal 0, board.sum_us(1, :duration)
    assert_equal :ready, Rondo::Scoreboard::STATES[2]
  end

  def test_what_the_numbers_are
    numbers = Rondo::Scoreboard::NUMBERS
    assert_equal Rondo::Scoreboard.new(1).row(0).keys, numbers.keys
    assert_equal({ kind: :counter, unit: "bytes", doc: "sent" }, numbers[:bytes_out])
    assert_equal %i[counter fact gauge], numbers.values.map { |row| row[:kind] }.uniq.sort
  end

  def test_another_process_writes
    board = Rondo::Scoreboard.new(1)
    script = "Rondo::Scoreboard.new(1, Integer(ARGV[0])).set(0, :queue, 7)"
    ruby = [RbConfig.ruby, *$LOAD_PATH.map { |path| "-I#{path}" }, "-rrondo", "-e", script]
    assert system(*ruby, board.fd.to_s, board.fd => board.fd)
    assert_equal 7, board.get(0, :queue)
  end

  def test_wrong_slots_and_names
    board = Rondo::Scoreboard.new(1)
    assert_raises(IndexError) { board.get(1, :queue) }
    assert_raises(IndexError) { board.get(-1, :queue) }
    assert_raises(KeyError) { board.get(0, :cue) }
    assert_raises(TypeError) { board.get(0, "queue") }
    assert_raises(TypeError) { board.set(0, nil, 1) }
    assert_raises(KeyError) { board.histogram(0, :queue) }
    assert_raises(KeyError) { board.sum_us(0, :queue) }
    assert_raises(IndexError) { board.sum_us(1, :wait) }
    assert_raises(Errno::EINVAL) { Rondo::Scoreboard.new(0) }
    File.open(__FILE__) { |file| assert_raises(SystemCallError) { Rondo::Scoreboard.new(1, file.fileno) } }
  end
end
