# frozen_string_literal: true

# Rondo.fibers: blocks that wait at the same time, in fibers of one thread.
# SPDX-License-Identifier: MIT

require "rondo/fibers/outcome"

module Rondo
  # What the block of {Rondo.fibers} gets, to start blocks with.
  class Fibers
    # What a block may raise without ending its thread.
    CAUGHT = [StandardError, ScriptError].freeze
    private_constant :CAUGHT

    # @api private
    def self.run(limit, block)
      unless limit.is_a?(Integer) && limit.positive?
        raise ArgumentError, "limit must be a number from 1, not #{limit.inspect}"
      end
      return new(limit).run(block) if Fiber.current_scheduler

      outcome = Outcome.new
      with_scheduler { Fiber.schedule { outcome.run(*CAUGHT) { new(limit).run(block) } } }
      outcome.value
    end

    # The thread's own fiber does not wait by its scheduler, so that has to run meanwhile.
    def self.with_scheduler
      if Fiber.scheduler
        yield
        Fiber.scheduler.run
        return
      end
      Fiber.set_scheduler(Scheduler.new)
      begin
        yield
        Fiber.scheduler.run
      ensure
        Fiber.set_scheduler(nil)
      end
    end
    private_class_method :with_scheduler

    # @api private
    def initialize(limit)
      @room = Thread::SizedQueue.new(limit)
      @running = 0
    end

    # Runs a block in a fiber. It begins at once. When it waits, the others go on that can, and then this returns. When
    # as many run as may, this waits for the end of one.
    # @return [Outcome]
    def start(&block)
      outcome = Outcome.new
      @room << outcome
      @running += 1
      begun = false
      Fiber.schedule do
        begun = true
        outcome.run(*CAUGHT, &block)
      ensure
        finish(outcome)
      end
      sleep 0 unless outcome.over? # each fiber that is there costs every garbage collection
      outcome
    ensure
      finish(outcome) if begun == false # the system has no room for one fiber more
    end

    # Runs the block for each element, in a fiber each.
    # @param elements [Enumerable]
    # @yield an element
    # @return [Array] what the blocks return, in the order of the elements
    # @raise what one of the blocks raises
    def map(elements)
      elements.map { |element| start { yield element } }.map(&:value)
    end

    # @api private
    def run(block)
      block.call(self)
    rescue Exception # rubocop:disable Lint/RescueException -- an error of the block goes first
      has_raised = true
      raise
    ensure
      wait
      raise_first unless has_raised
    end

    private

    def finish(outcome)
      @failed = outcome if outcome.failed? && !@failed&.failed?
      @running -= 1
      @room.pop
      @over&.close if @running.zero?
    end

    def wait
      @over = Thread::Queue.new
      @over.pop unless @running.zero?
    end

    def raise_first
      @failed.value if @failed&.failed?
    end
  end
end
