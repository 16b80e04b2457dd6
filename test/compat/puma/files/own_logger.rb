# frozen_string_literal: true
# SPDX-License-Identifier: MIT

class LinesOfTest
  def initialize(output = $stdout)
    @output = output
  end

  def write(line)
    @output.puts(line)
  end
end
log_requests
custom_logger LinesOfTest.new
port 3000
