# frozen_string_literal: true

# Where the output of a process goes.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/boot/process_setup"
require "tmpdir"

class ProcessSetupTest < Minitest::Test
  # Other threads write meanwhile: none of their output may wait in a buffer.
  def test_what_is_written_while_a_log_is_opened_again_is_in_it_at_once
    Dir.mktmpdir do |folder|
      synchronous = nil
      with_output(File.join(folder, "old.log")) do
        seen = TracePoint.new(:c_return) do |point|
          synchronous = $stdout.sync if point.method_id == :reopen
        end
        seen.enable { Rondo::ProcessSetup.new(settings(File.join(folder, "new.log"))).redirect(again: true) }
        $stdout.write("a line")
      end
      assert synchronous
      assert_equal "a line", File.read(File.join(folder, "new.log"))
    end
  end

  private

  def settings(path) = { redirect_stdout: path, redirect_stderr: nil, redirect_append: true }

  def with_output(path)
    before = $stdout
    $stdout = File.open(path, "a")
    $stdout.sync = true
    yield
  ensure
    $stdout.close unless $stdout.equal?(before)
    $stdout = before
  end
end
