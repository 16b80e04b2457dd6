# frozen_string_literal: true

# From what the application has asked for to a server and its end: one Rondo.start. The process that calls it is
# iodine's root; with workers it is the master, and the mold forks the workers.
# SPDX-License-Identifier: MIT

require "rondo/process/program"
require "iodine/setup"

module Iodine
  @running = @worker = @child = @clustered = false

  class << self
    # Serves until the server is stopped; code behind it runs in the root alone.
    # @return [Iodine]
    # @raise [RuntimeError] it runs already, or nothing can listen
    def start
      raise "Iodine already running!" if running?

      serve(Base::Setup.new(Base.listeners))
      self
    end

    # Stops this process; a worker is replaced.
    # @return [Iodine]
    def stop
      Process.kill(worker? && !master? ? "TERM" : "INT", Process.pid) if running?
      self
    end

    # @return [Boolean]
    def running?
      @running
    end

    # @return [Boolean] whether this process is the root, or has its work
    def master?
      !@child
    end

    # @return [Boolean] whether this process serves
    def worker?
      @worker
    end

    # @api private
    # @return [Boolean] whether there are workers
    attr_accessor :clustered
    alias clustered? clustered

    # @api private
    # @return [Integer, nil] the process that has called {start}
    attr_reader :root

    # @api private
    # @return [void]
    def end_running
      @running = false
    end

    # @api private
    # @param child [Boolean] whether another process is the root
    # @return [void]
    def begin_worker(child:)
      @worker = true
      @child = child
    end

    private

    def serve(setup)
      @running = true
      @root = Process.pid
      Base.reach(:pre_start)
      setup.serve
    rescue Rondo::AddressError => e
      raise e.message, cause: nil
    ensure
      end_running
      Base.end_tasks
      @worker = @clustered = false
      Base.listeners.clear
    end
  end
end
