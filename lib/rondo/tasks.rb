# frozen_string_literal: true

# Tasks and timers: blocks that run on application threads without a request. The work is done by
# Rondo::Task in the extension (ext/rondo/app/rb_task.c), which defines Rondo.run as well.
# SPDX-License-Identifier: MIT

# Tasks and timers; see docs/TASKS.md. What is asked for before a server runs in this process begins when one
# does, in each worker of a cluster.

module Rondo
  # A task or a timer, as {Rondo.run} and its siblings return it.
  class Task
    # The longest time of a timer, in milliseconds: a hundred years.
    MAX_MS = 36_525 * 86_400_000
    # The highest number of repetitions.
    MAX_REPETITIONS = 0xffff_ffff

    class << self
      private :begin

      # @api private
      # @return [Task]
      def add(interval_ns, runs, when_idle, block)
        self.begin(interval_ns, runs, when_idle, block)
      end

      # @api private
      # @param milliseconds [Numeric]
      # @param least [Integer]
      # @return [Integer] nanoseconds
      # @raise [TypeError, ArgumentError]
      def nanoseconds(milliseconds, least)
        unless milliseconds.is_a?(Numeric) && milliseconds.real?
          raise TypeError, "milliseconds must be a number, not #{milliseconds.class}"
        end
        unless (least..MAX_MS).cover?(milliseconds)
          raise ArgumentError, "milliseconds must be from #{least} to #{MAX_MS}, not #{milliseconds}"
        end

        (milliseconds * 1_000_000).ceil
      end
    end
  end

  class << self
    # The name that iodine has for {Rondo.run}.
    # @yield
    # @return [Task]
    # @raise [ArgumentError] without a block
    # @raise [TaskLimitError] there are max_tasks tasks and timers already
    alias defer run

    # Calls the block once, when the time has passed. A stop of the server ends timers.
    # @param milliseconds [Numeric] from 0 to {Task::MAX_MS}
    # @yield
    # @return [Task]
    # @raise [TypeError, ArgumentError] for anything else, and without a block
    # @raise [TaskLimitError] there are max_tasks tasks and timers already
    def run_after(milliseconds, &block)
      Task.add(Task.nanoseconds(milliseconds, 0), 1, false, block)
    end

    # Calls the block again and again. The next call is due an interval after the begin of the last one; it never
    # runs beside itself, and calls that were missed are not made up for.
    # @param milliseconds [Numeric] from 1 to {Task::MAX_MS}
    # @param repetitions [Integer] number of calls; 0: until a stop
    # @yield
    # @return [Task]
    # @raise [TypeError, ArgumentError] for anything else, and without a block
    # @raise [TaskLimitError] there are max_tasks tasks and timers already
    def run_every(milliseconds, repetitions = 0, &block)
      unless repetitions.is_a?(Integer)
        raise TypeError, "repetitions must be an Integer, not #{repetitions.class}"
      end
      unless repetitions.between?(0, Task::MAX_REPETITIONS)
        raise ArgumentError, "repetitions must be from 0 to #{Task::MAX_REPETITIONS}, not #{repetitions}"
      end

      Task.add(Task.nanoseconds(milliseconds, 1), repetitions, false, block)
    end

    # Calls the block once, as soon as no request, message or task waits.
    # @yield
    # @return [Task]
    # @raise [ArgumentError] without a block
    # @raise [TaskLimitError] there are max_tasks tasks and timers already
    def on_idle(&block)
      Task.add(0, 1, true, block)
    end
  end
end
