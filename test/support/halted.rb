# frozen_string_literal: true

# SPDX-License-Identifier: MIT

# Processes that stand still. A signal stops a process thread by thread. So for a moment after kill(2) some threads
# still run, and may for example accept a connection.
module Halted
  PATIENCE = 60

  module_function

  # Returns when none of its threads runs.
  def halt(pid)
    Process.kill("STOP", pid)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until still?(pid)
      raise "#{pid} does not stop" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.001)
    end
  end

  def still?(pid)
    Dir["/proc/#{pid}/task/*/stat"].all? { |file| File.read(file).match?(/\) [TZX]/) }
  rescue Errno::ENOENT, Errno::ESRCH
    false
  end
end
