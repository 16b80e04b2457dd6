# frozen_string_literal: true

# How long the master waits before it starts a process again that ends again and again. And the ends of workers that
# nobody has asked for, a part of the supervisor (supervisor.rb): what the log says of them, how long their slot waits,
# and when they count against their generation.
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

  # Workers that crash, or that cannot boot.
  # @api private
  module Failures
    # Seconds until the next try after so many ends in a row. After a worker that lived longer than STABLE the first
    # delay comes again.
    DELAYS = [0, 1, 2, 4, 8, 16, 30].freeze
    STABLE = 30
    # Workers of a generation that end unexplained before they are ready until it counts as failed.
    LOST = 3

    private

    def explain(worker)
      return if worker.stopping? || @stopping

      worker.booting? ? failed_to_boot(worker) : crashed(worker)
    end

    def crashed(worker)
      @places[worker.index].backoff.reset if worker.age > STABLE
      @log.error "! #{worker} #{worker.end_in_words}#{wait_before_next(worker)}"
    end

    def wait_before_next(worker)
      delay = @places[worker.index].backoff.failed
      delay.zero? ? "" : "; the next one starts in #{delay} s"
    end

    def failed_to_boot(worker)
      worker.mold.lost += 1
      reason = worker.failure || "#{worker} #{worker.end_in_words} before it was ready"
      wait = wait_before_next(worker)
      refused = (worker.failure || worker.mold.lost >= LOST) && @generations.worker_failed(worker.mold, reason)
      @log.error "! #{worker} cannot boot: #{reason}#{wait}" unless refused
    end
  end
end
