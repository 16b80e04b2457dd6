# frozen_string_literal: true

# Tasks and timers: Rondo's own (docs/TASKS.md), which answer with the block instead of a handle.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    UINT = 1 << 32

    class << self
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
      Rondo.run(&block)
      block
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
      Rondo.run_after(milliseconds, &block)
      block
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
      return Base.error("Iodine couldn't initialize timer: 0 milliseconds") if milliseconds.zero?

      Rondo.run_every(milliseconds, repetitions, &block)
      block
    end

    # Calls the block once, when nothing else is to be done.
    # @return [Proc] the block
    # @raise [LocalJumpError] without a block
    def on_idle(&block)
      Base.need_block(block)
      Rondo.on_idle(&block)
      block
    end
  end
end
