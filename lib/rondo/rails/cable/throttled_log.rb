# frozen_string_literal: true

# Lines of the log about what may happen many times a second.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # One line at once, and another one after some seconds at the earliest, which counts what has happened since.
      class ThrottledLog
        # Seconds between two lines.
        QUIET = 10
        private_constant :QUIET

        # @param log [#error]
        def initialize(log)
          @log = log
          @count = 0
          @quiet_until = 0
          @mutex = Mutex.new
        end

        # @yieldparam times [String] " (3 times)", since the last line; empty for one
        # @yieldreturn [String]
        # @return [void]
        def error
          now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
          count = @mutex.synchronize do
            @count += 1
            next if now < @quiet_until

            @quiet_until = now + QUIET
            @count.tap { @count = 0 }
          end
          @log.error(yield(count > 1 ? " (#{count} times)" : "")) if count
        end
      end
    end
  end
end
