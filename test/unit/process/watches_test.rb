# frozen_string_literal: true

# Touching tmp/restart.txt, even if the file or its folder comes and goes; what is work, so that a server is not idle.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/process/watches"
require "fileutils"
require "tmpdir"

class RestartFileTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir
    @path = File.join(@folder, "tmp/restart.txt")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def touch(at)
    FileUtils.mkdir_p(File.dirname(@path))
    FileUtils.touch(@path, mtime: Time.at(at))
  end

  def test_each_touch_counts_once
    touch 1
    file = Rondo::RestartFile.new(@path)
    refute_predicate file, :touched?
    touch 2
    assert_equal [true, false], [file.touched?, file.touched?]
  end

  def test_a_file_that_was_not_there
    file = Rondo::RestartFile.new(@path)
    refute_predicate file, :touched?
    touch 1
    assert_equal [true, false], [file.touched?, file.touched?]
  end
end

class IdleTimeTest < Minitest::Test
  # With a clock that the test moves.
  class Clocked < Rondo::IdleTime
    attr_accessor :clock

    def initialize(...)
      @clock = 0
      super
    end

    private

    def now
      @clock
    end
  end

  def setup
    @board = Rondo::Scoreboard.new(1)
    @board.set(0, :pid, Process.pid)
    @idle = Clocked.new(@board, 10)
    @idle.over?
  end

  def after(seconds)
    @idle.clock += seconds
    @idle.over?
  end

  def test_what_grows_is_work
    %i[requests static_answers bytes_in bytes_out].each do |name|
      refute after(9), name
      @board.set(0, name, 1)
      assert_equal [false, false, true], [after(9), after(9), after(1)], name
      @idle = Clocked.new(@board, 10).tap(&:over?)
    end
  end

  def test_what_is_under_way_is_work
    %i[under_way queue busy upgraded tasks_running output_bytes].each do |name|
      @board.set(0, name, 1)
      refute after(99), name
      @board.set(0, name, 0)
      assert_equal [false, true], [after(9), after(1)], name
      @idle = Clocked.new(@board, 10).tap(&:over?)
    end
  end
end
