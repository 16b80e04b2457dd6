# frozen_string_literal: true

# How long the master waits before it starts a process again that ends again and again.
# SPDX-License-Identifier: MIT

require "rondo/process/process_loop"

module Rondo
  # Counts ends in a row and knows the time of the next try.
  # @api private
  class Backoff
    # @return [Integer] ends in a row
    attr_reader :count

    # @param delays [Array<Numeric>] seconds until the next try, by the number of ends before this one; the last one
    #   for all that follow
    def initialize(delays)
      @delays = delays
      @count = 0
      @not_before = 0
    end

    # @return [Boolean] whether the next try may begin
    def over?
      ProcessLoop.now >= @not_before
    end

    # @return [Numeric] seconds until the next try
    def failed
      delay = @delays[[@count, @delays.size - 1].min]
      @not_before = ProcessLoop.now + delay
      @count += 1
      delay
    end

    # The next end is the first one again.
    # @return [void]
    def reset
      @count = 0
    end
  end
end
