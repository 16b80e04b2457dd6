# frozen_string_literal: true

# Tasks and timers: Rondo's own (docs/TASKS.md), which answer with the block instead of a handle. What is asked for
# before the start runs in each process, also in the root of a cluster.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    UINT = 1 << 32

    @tasks = []

    class << self
      # @param name [Symbol] run, run_after, run_every or on_idle
      # @param arguments [Array<Integer>]
      # @param block [Proc]
      # @return [Proc] the block
      def add_task(name, *arguments, block)
        guarded = -> { guard(&block) }
        return (root? ? Rondo::Root : Rondo).public_send(name, *arguments, &guarded) && block if @begun

        @tasks << [name, arguments, guarded]
        block
      end

      # @return [Boolean] whether this process serves, or is the root of those that do
      def begun?
        @begun ? true : false
      end

      # Hands over what was asked for before the start.
      # @param cluster [Boolean] whether the root does not serve
      # @return [void]
      def begin_tasks(cluster)
        @begun = true
        @tasks.each do |name, arguments, block|
          Rondo.public_send(name, *arguments, &block)
          Rondo::Root.public_send(name, *arguments, &block) if cluster && name != :on_idle
        end
        @tasks = []
      end

      # @return [void]
      def end_tasks
        @begun = false
      end

      # @return [Boolean] whether this process is the root of a cluster, in which there is no server
      def root?
        Iodine.clustered? && !Iodine.worker? && Iodine.root == Process.pid
      end

      # @param number [Integer] also one below zero, which is read as an unsigned int of C is
      # @return [Integer]
      # @raise [RangeError]
      def unsigned(number)
        unless number.between?(-UINT / 2, UINT - 1)
          size = number.negative? ? "small" : "big"
          raise RangeError, "integer #{number} too #{size} to convert to `unsigned int'"
        end

        number % UINT
      end
    end
  end

  class << self
    # Calls the block soon. Before {start}: in each process, when it serves.
    # @return [Proc] the block
    # @raise [LocalJumpError] without a block
    def run(&block)
      Base.need_block(block)
      Base.add_task(:run, block)
    end
    alias defer run

    # @param milliseconds [Integer, nil] nil and 0: as {run}
    # @return [Proc] the block
    # @raise [TypeError, RangeError, LocalJumpError]
    def run_after(milliseconds, &block)
      return run(&block) if milliseconds.nil?
      raise TypeError, "milliseconds must be a number" unless milliseconds.is_a?(Integer)

      milliseconds = Base.unsigned(milliseconds)
      return run(&block) if milliseconds.zero?

      Base.need_block(block)
      Base.add_task(:run_after, milliseconds, block)
    end

    # @param milliseconds [Integer]
    # @param repetitions [Integer, nil] nil and 0: for ever
    # @return [Proc, nil] the block; nil for 0 ms, which cannot be
    # @raise [TypeError, RangeError, LocalJumpError]
    def run_every(milliseconds, repetitions = nil, &block)
      raise TypeError, "milliseconds must be a number." unless milliseconds.is_a?(Integer)
      unless repetitions.nil? || repetitions.is_a?(Integer)
        raise TypeError, "repetitions must be a number or `nil`."
      end

      milliseconds = Base.unsigned(milliseconds)
      repetitions = Base.unsigned(repetitions || 0)
      Base.need_block(block)
      return Base.add_task(:run_every, milliseconds, repetitions, block) if milliseconds.positive?

      Base.error("Iodine couldn't initialize timer: 0 milliseconds")
      nil
    end

    # Calls the block once, when nothing else is to be done.
    # @return [Proc] the block
    # @raise [LocalJumpError] without a block
    def on_idle(&block)
      Base.need_block(block)
      Base.add_task(:on_idle, block)
    end
  end
end
