# frozen_string_literal: true

# Rondo.offload: a few threads for what would hold up a thread with fibers.
# SPDX-License-Identifier: MIT

require "rondo/fibers/outcome"

module Rondo
  # Threads of low priority that run blocks. They begin when they are needed, and stay.
  # @api private
  class Offload
    # How many threads there are at most.
    THREADS = 4
    # Of these threads: a loop that computes goes after the application threads.
    PRIORITY = -3

    # A block that runs, and its end. Whatever it raises is for those who wait for it.
    class Job < Outcome
      # @param block [#call]
      def initialize(block)
        super()
        @block = block
      end

      # @return [void]
      def run
        super(Exception, &@block)
      end
    end

    class << self
      # @param block [#call]
      # @return [Job] it runs, or will; one of the threads has run it: if all of them waited for others, none would end
      def begin(block)
        job = Job.new(block)
        Thread.current.thread_variable_get(:rondo_offload) ? job.tap(&:run) : pool.add(job)
      end

      # @param block [#call]
      # @return what the block returns
      # @raise what the block raises
      def run(block)
        self.begin(block).value
      end

      private

      # A forked child has no threads of its parent's.
      def pool
        @pool = nil unless @pool&.process == Process.pid
        @pool ||= new
      end
    end

    # @return [Integer] pid of the process that has the threads
    attr_reader :process

    def initialize
      @process = Process.pid
      @jobs = Thread::Queue.new
      @threads = []
    end

    # @param job [Job]
    # @return [Job] the same
    def add(job)
      @jobs << job
      @threads.select!(&:alive?) # a block may end its thread
      start if @threads.size < THREADS && @jobs.size > @jobs.num_waiting
      job
    end

    private

    def start
      @threads << thread = Thread.new do
        Thread.current.thread_variable_set(:rondo_offload, true)
        loop { @jobs.pop.run }
      end
      thread.name = "rondo offload"
      thread.priority = PRIORITY
    end
  end
end
