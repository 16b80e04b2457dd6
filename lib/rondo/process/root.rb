# frozen_string_literal: true

# Blocks that a program gives to the process in which it has called Rondo.start. With workers that is the master: there
# they run one after the other on a thread of their own, never on the master's loop, and end when a restart by USR2
# replaces the master (program.rb). Without workers they are tasks and subscriptions as any other.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/process/root_runner"

module Rondo
  # Tasks, timers and subscriptions of the first process of a program; see docs/PROGRAM.md.
  module Root
    # A block that waits for its time.
    class Job
      # @api private
      # @return [Float] seconds of the monotonic clock
      attr_reader :due

      # @api private
      def initialize(nanoseconds, runs, block)
        @nanoseconds = nanoseconds
        @runs = runs
        @left = runs.zero? ? Float::INFINITY : runs
        @is_cancelled = false
        @block = block
      end

      # Ends it. A call that has begun goes on.
      # @return [Boolean] whether it would have been called again
      def cancel
        return @task.cancel if @task

        was_over = over?
        @is_cancelled = true
        !was_over
      end

      # @return [Boolean] whether it will not be called again
      def over?
        @task ? @task.over? : @is_cancelled || @left.zero?
      end

      # @api private
      # @param now [Float]
      # @return [void]
      def begin(now)
        @due = now + (@nanoseconds / 1e9)
      end

      # @api private
      # @return [void]
      def call
        @left -= 1
        @block.call
      end

      # @api private
      # @return [void]
      def pass_on
        @task = Task.add(@nanoseconds, @runs, false, @block) unless over?
      end
    end

    # What {Root.subscribe} has got.
    # @api private
    Subscription = Struct.new(:channel, :pattern, :block) do
      # @return [Array] what it is known by
      def key
        [channel, pattern]
      end
    end

    @lock = Mutex.new
    @jobs = []
    @subscriptions = {}
    @runner = nil
    @state = :before

    class << self
      # Calls the block soon. Before Rondo.start, or in the process that has called it, on any thread.
      # @yield
      # @return [Job]
      # @raise [ArgumentError] without a block
      # @raise [Error] this process serves, and has not called Rondo.start
      # @raise [TaskLimitError] there are too many
      def run(&block)
        add(0, 1, block)
      end

      # As {Rondo.run_after}.
      # @param milliseconds [Numeric]
      # @return [Job]
      # @raise [TypeError, ArgumentError, Error, TaskLimitError]
      def run_after(milliseconds, &block)
        add(Task.nanoseconds(milliseconds, 0), 1, block)
      end

      # As {Rondo.run_every}.
      # @param milliseconds [Numeric]
      # @param repetitions [Integer] number of calls; 0: until a stop
      # @return [Job]
      # @raise [TypeError, ArgumentError, Error, TaskLimitError]
      def run_every(milliseconds, repetitions = 0, &block)
        unless repetitions.is_a?(Integer) && repetitions.between?(0, Task::MAX_REPETITIONS)
          raise ArgumentError, "repetitions must be from 0 to #{Task::MAX_REPETITIONS}, not #{repetitions.inspect}"
        end

        add(Task.nanoseconds(milliseconds, 1), repetitions, block)
      end

      # Messages of a channel go to the block. Subscribing again replaces.
      # @param channel [String, Symbol]
      # @param is_pattern [Boolean]
      # @param match [Symbol, nil] :redis for a pattern
      # @yieldparam channel [String]
      # @yieldparam message [String]
      # @return [true]
      # @raise [ArgumentError, TypeError, Error]
      def subscribe(channel, is_pattern = false, match: nil, &block) # rubocop:disable Style/OptionalBooleanParameter
        raise ArgumentError, "a subscription without a client needs a block" unless block

        added = Subscription.new(*PubSub.key_of(channel, is_pattern, match), block)
        @lock.synchronize do
          check
          return PubSub.subscribe(added.channel, added.pattern, &block) if @state == :passed_on

          @subscriptions[added.key] = added
          @runner&.subscribe(added)
        end
        true
      end

      # @param channel [String, Symbol]
      # @param is_pattern [Boolean]
      # @param match [Symbol, nil]
      # @return [Boolean] whether there was one
      def unsubscribe(channel, is_pattern = false, match: nil) # rubocop:disable Style/OptionalBooleanParameter
        key = PubSub.key_of(channel, is_pattern, match)
        @lock.synchronize do
          return PubSub.unsubscribe(*key) if @state == :passed_on

          @runner&.unsubscribe(key)
          !@subscriptions.delete(key).nil?
        end
      end

      # @api private
      # @return [Boolean] whether anything was asked for
      def any?
        @jobs.any? || @subscriptions.any?
      end

      # In the master.
      # @api private
      # @param hub [Hub]
      # @param log [Logger]
      # @param limit [Integer] of jobs
      # @yield when a block has returned, on its thread
      # @return [void]
      def start(hub, log, limit, &after)
        @lock.synchronize do
          @state = :runs
          @runner = Runner.new(hub, log, limit, after)
          @jobs.each { |job| @runner.add(job) }
          @subscriptions.each_value { |subscription| @runner.subscribe(subscription) }
          @runner.start
        end
      end

      # As {Runner#unless_busy}.
      # @api private
      def unless_busy(&block)
        @runner ? @runner.unless_busy(&block) : yield
      end

      # In a process that serves alone.
      # @api private
      # @return [void]
      def pass_on
        @lock.synchronize do
          @state = :passed_on
          @jobs.each(&:pass_on)
          @subscriptions.each_value { |one| PubSub.subscribe(one.channel, one.pattern, &one.block) }
        end
      end

      # In a mold: the process that it serves has its own.
      # @api private
      # @return [void]
      def forget
        @lock = Mutex.new
        @state = :elsewhere
        @jobs = []
        @subscriptions = {}
        @runner = nil
      end

      # @api private
      # @return [void]
      def close
        @runner&.close
        @lock.synchronize do
          @runner = nil
          @state = :before
          @jobs = []
          @subscriptions = {}
        end
      end

      private

      def add(nanoseconds, runs, block)
        raise ArgumentError, "a task needs a block" unless block

        job = Job.new(nanoseconds, runs, block)
        @lock.synchronize do
          check
          keep(job)
        end
        job
      end

      # Under the lock. A task of the server is kept there.
      def keep(job)
        return job.pass_on if @state == :passed_on

        @runner ? @runner.add(job) : @jobs << job
      end

      def check
        raise Error, "this process has not called Rondo.start" if @state == :elsewhere
      end
    end
  end
end
