# frozen_string_literal: true

# The end of a block that runs in another fiber, or on another thread.
# SPDX-License-Identifier: MIT

module Rondo
  # A block that was started by {Fibers#start}, or is run by {Rondo.offload}.
  class Outcome
    # @api private
    def initialize
      @done = Thread::Queue.new
    end

    # @api private
    # @param caught [Array<Class>] errors that are kept for whoever asks for the value
    # @return [void]
    def run(*caught)
      @value = yield
    rescue *caught => e
      @error = e
    ensure
      @done.close
    end

    # Waits for the end of the block. Any fiber, any number of them.
    # @return what the block returned
    # @raise what the block raised
    def value
      @done.pop
      @taken = true
      raise @error if @error

      @value
    end

    # @api private
    # @return [Boolean] whether the block has ended
    def over?
      @done.closed?
    end

    # @api private
    # @return [Boolean] an error that nobody got
    def failed?
      !@error.nil? && !@taken
    end
  end
end
