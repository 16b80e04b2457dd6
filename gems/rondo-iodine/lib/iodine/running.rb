# frozen_string_literal: true

# From what the application has asked for to a server and its end: one Rondo.start. The process that calls it is
# iodine's root; with workers it is the master, and the mold forks the workers.
# SPDX-License-Identifier: MIT

require "rondo/process/program"
require "iodine/setup"

module Iodine
  @running = @worker = @child = @clustered = @ready = @stop_wanted = @obeyed = false

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
      return self unless running?

      @stop_wanted = true
      obey_stop if @ready
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

    # From now on this process understands signals: nothing before that may end it in another way than {stop} does.
    # @api private
    # @return [void]
    def begin_obeying
      @ready = true
      obey_stop if @stop_wanted
    end

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
      begin_obeying
    end

    private

    # A second signal would stop at once.
    def obey_stop
      return if @obeyed

      @obeyed = true
      Process.kill(worker? && !master? ? "TERM" : "INT", Process.pid)
    end

    def serve(setup)
      @running = true
      @root = Process.pid
      @ready = @stop_wanted = @obeyed = false
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
