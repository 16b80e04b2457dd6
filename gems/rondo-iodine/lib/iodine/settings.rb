# frozen_string_literal: true

# How many threads and workers, how talkative, and the settings of listeners that name none of their own.
# SPDX-License-Identifier: MIT

require "rondo/config/cpu_count"

module Iodine
  # Settings of listeners that say nothing themselves; initializers and the command write here.
  DEFAULT_SETTINGS = {} # rubocop:disable Style/MutableConstant -- applications change it
  # @deprecated {DEFAULT_SETTINGS}
  DEFAULT_HTTP_ARGS = DEFAULT_SETTINGS

  @threads = @workers = nil
  @verbosity = 4

  class << self
    # @return [Integer] threads of each process; 0 until it was set
    def threads
      @threads || 0
    end

    # @param number [Integer] negative: a fraction of the CPUs
    # @raise [TypeError, RangeError]
    def threads=(number)
      @threads = Base.counted(number, "thread", 1 << 12)
    end

    # @return [Integer] processes; 0 until it was set
    def workers
      @workers || 0
    end

    # @param number [Integer] negative: a fraction of the CPUs; 1: this process alone
    # @raise [TypeError, RangeError]
    def workers=(number)
      @workers = Base.counted(number, "worker process", 1 << 9)
    end

    # @return [Integer] 0 nothing, 1 what ends the server, 2 errors, 3 warnings, 4 information, 5 everything
    attr_reader :verbosity

    # @param level [Integer]
    # @return [Iodine] where it is sent by its name
    # @raise [TypeError]
    def verbosity=(level)
      Base.check(level, Integer)
      @verbosity = level
      self
    end
  end

  # @api private
  module Base
    # The largest number of processors that a server takes for itself.
    MOST_CPUS = 8

    class << self
      # @raise [TypeError] in the words of Ruby's own methods
      def check(value, type, name = type.name)
        return if type === value # rubocop:disable Style/CaseEquality

        found = [nil, true, false].include?(value) ? value.inspect : value.class.name
        raise TypeError, "wrong argument type #{found} (expected #{name})"
      end

      # @param what [String] for the message
      # @return [Integer] the number
      # @raise [TypeError, RangeError]
      def counted(number, what, limit)
        check(number, Integer)
        return number if number < limit

        raise RangeError, "requsted #{what} count is out of range."
      end

      # Iodine's table: nothing set is one of each per CPU; below zero is a part of the CPUs; a zero beside a number
      # below zero is that number without its sign.
      # @return [Array(Integer, Integer)] threads and workers, each 1 or more
      def concurrency(threads, workers, cpus = Rondo::CPUCount.usable)
        if threads.zero? && workers.zero?
          cpus = [cpus, MOST_CPUS].min
          return [cpus, cpus > 3 ? cpus - 1 : cpus]
        end
        threads, workers = fractions(threads, workers, cpus) if threads.negative? || workers.negative?
        [threads, workers].map { |number| [number, 1].max }
      end

      private

      def fractions(threads, workers, cpus)
        own_threads = part(threads, workers, cpus)
        own_workers = part(workers, threads, cpus)
        crowded = own_threads * own_workers >= cpus && cpus > 3
        [crowded && threads.negative? ? own_threads - 1 : own_threads,
         crowded && workers.negative? ? own_workers - 1 : own_workers]
      end

      def part(own, other, cpus)
        return cpus / -own if own.negative?

        own.zero? ? -other : own
      end
    end
  end
end
