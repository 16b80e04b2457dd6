# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Runs a block in a child process: what it changes of its process (limits, modules that are loaded) stays there.

module InChild
  # @return [String] what the block returned
  def in_child
    reader, writer = IO.pipe
    pid = fork do
      reader.close
      writer.write(yield)
      writer.close
      exit!(0)
    end
    writer.close
    reader.read
  ensure
    Process.wait(pid)
    reader.close
  end
end
