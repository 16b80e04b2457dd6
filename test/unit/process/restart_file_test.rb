# frozen_string_literal: true

# Touching tmp/restart.txt, even if the file or its folder comes and goes.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/process/restart_file"
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
