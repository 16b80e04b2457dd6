# frozen_string_literal: true

# Notifies systemd (sd_notify(3)): readiness, restarts, the end, a line for `systemctl status`
# each second, and a sign of life at half the period that it asks for (WatchdogSec=).
# SPDX-License-Identifier: MIT

require "rondo/boot/inherited"

module Rondo
  # Notifications of one process.
  # @api private
  class Systemd
    # @param env [Hash]
    def initialize(env = ENV)
      @env = env
      @wanted = !env["NOTIFY_SOCKET"].to_s.empty? && !env["PUMA_SKIP_SYSTEMD"]
      @mutex = Mutex.new
      @restarting = false
    end

    # @return [Boolean] whether systemd listens
    def wanted?
      @wanted
    end

    # @param state [String] READY=1, RELOADING=1, STOPPING=1, STATUS=…
    # @return [void]
    def notify(state)
      Inherited.notify(state, @env) if @wanted
    end

    # systemd takes RELOADING only with the time (Type=notify-reload).
    # @return [void]
    def reloading
      notify("RELOADING=1\nMONOTONIC_USEC=#{Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)}")
    end

    # Reports the stop, unless the process is about to be started again: systemd would take that for its end.
    # @return [void]
    def ready
      @mutex.synchronize { notify("READY=1") unless @restarting }
    end

    # This process does not report that it is ready any more; the process that replaces it does.
    # @return [void]
    def restarting
      @mutex.synchronize do
        @restarting = true
        reloading
      end
    end

    # @return [Float, nil] seconds between two signs of life
    def watchdog_period
      usec = @env["WATCHDOG_USEC"].to_i
      pid = @env["WATCHDOG_PID"].to_i
      usec / 2_000_000.0 if @wanted && usec.positive? && (pid.zero? || pid == Process.pid)
    end

    # @return [void]
    def sign_of_life
      notify("WATCHDOG=1")
    end
  end
end
