# frozen_string_literal: true

# The number of workers and its source: -w, `workers` or WEB_CONCURRENCY. `auto` counts CPUs.
# SPDX-License-Identifier: MIT

require "rondo/config/cpu_count"

module Rondo
  # A number with its source.
  # @api private
  class WorkerCount
    # Each has two rows of the scoreboard, which holds 512.
    MOST = 256

    # @return [Integer] 0 for a single process
    attr_reader :number

    # @param settings [Settings::Resolved]
    # @raise [ConfigurationError] it is neither a number nor auto
    def initialize(settings)
      @given = settings[:workers]
      @source = settings.source(:workers)
      @number = auto? ? CPUCount.usable : Integer(@given.to_s, 10)
      raise ArgumentError unless @number.between?(0, MOST)
    rescue ArgumentError, TypeError
      raise ConfigurationError, "workers (#{@source}) must be auto or a number up to #{MOST}, not #{@given.inspect}"
    end

    # @return [Boolean]
    def cluster?
      @number.positive?
    end

    # @return [String] "2 (auto: CPUs this process may use; WEB_CONCURRENCY)"
    def to_s
      auto? ? "#{@number} (auto, by #{@source}: CPUs this process may use)" : "#{@number} (#{@source})"
    end

    private

    def auto?
      @given.to_s == "auto"
    end
  end
end
