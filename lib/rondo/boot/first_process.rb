# frozen_string_literal: true

# The first process of a container is special in two ways: it has to reap orphans, and signals without a handler do
# not end it. So if the command (cli.rb) is process 1, it forks. The child serves, and may wait for its own children
# undisturbed. The first process only passes signals on and reaps.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # What process 1 does until its server ends.
  # @api private
  class FirstProcess
    SIGNALS = %w[INT TERM QUIT HUP USR1 USR2 TTIN TTOU INFO PWR WINCH CONT].freeze
    # systemd and podman name the process they mean.
    NAMING = %w[LISTEN_PID WATCHDOG_PID].freeze

    # @return [Boolean] whether this process has the two duties
    def self.needed?
      Process.pid == 1
    end

    # Returns in the child, which becomes the server; this process ends with the status of the server.
    # @return [void]
    def self.stand_apart
      new.run
    end

    # @return [void]
    def run
      @early = []
      before = trap_signals
      known = @early.size # the first process hands these on
      @child = fork
      return serve_as_child(before, known) unless @child

      $PROGRAM_NAME = "rondo: first process"
      @early.each { |name| hand_on(name) }
      close_sockets
      exit!(status_of(wait))
    end

    private

    # ---- the child ----

    # Handles signals that were passed on before this process had handlers.
    def serve_as_child(before, known)
      before.each { |name, handler| trap(name, handler || "DEFAULT") }
      # So that Ctrl-C comes from the first process alone, and once.
      ProcessTree.lead_terminal
      NAMING.each { |name| ENV[name] = Process.pid.to_s if ENV[name] == "1" }
      @early.drop(known).each { |name| Process.kill(name, Process.pid) }
    end

    # ---- the first process ----

    def trap_signals
      (SIGNALS & Signal.list.keys).to_h do |name|
        [name, trap(name) { @child ? hand_on(name) : @early << name }]
      end
    end

    def hand_on(name)
      @asked ||= name == "TERM"
      Process.kill(name, @child)
    rescue Errno::ESRCH
      nil # it has ended, and is reaped next
    end

    # Inherited sockets belong to the child: they have to close when the child closes them.
    def close_sockets
      count = ENV["LISTEN_PID"] == "1" ? ENV["LISTEN_FDS"].to_i : 0
      count.times { |index| IO.for_fd(Inherited::FIRST_SYSTEMD_FD + index).close }
    rescue SystemCallError
      nil # not a socket: the child reports it
    end

    # Reaps children until the server has ended.
    def wait
      loop do
        pid, status = Process.wait2(-1)
        return status if pid == @child
      end
    end

    # The same as in a shell, except that an end after a TERM that was passed on is a success.
    def status_of(status)
      return status.exitstatus unless status.signaled?
      return 0 if @asked && status.termsig == Signal.list["TERM"]

      128 + status.termsig
    end
  end
end
