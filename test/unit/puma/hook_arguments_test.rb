# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/puma/hook_arguments"

class EndedStatusTest < Minitest::Test
  METHODS = %i[pid to_i exited? signaled? stopped? exitstatus termsig stopsig coredump? success?].freeze

  # What Ruby says of a process that it has waited for.
  def check(status)
    ended = Rondo::EndedStatus.new(status.pid, status.to_i)
    METHODS.each do |name|
      theirs, ours = status.public_send(name), ended.public_send(name)
      theirs.nil? ? assert_nil(ours, name) : assert_equal(theirs, ours, name)
    end
    assert_equal ended, status
  end

  def ended(&block)
    Process.wait2(fork(&block)).last
  end

  def test_exits
    [0, 1, 9, 255].each { |code| check(ended { exit!(code) }) }
  end

  def test_signals
    %w[TERM KILL INT].each do |name|
      check(ended do
        trap(name, "SYSTEM_DEFAULT") unless name == "KILL"
        Process.kill(name, Process.pid)
        sleep
      end)
    end
  end
end
