# frozen_string_literal: true

# A server that runs on this thread until somebody stops it, and the application's end when it does
# not come back by itself. Used by the launcher and by workers.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # Runs a server and stops it by its deadline.
  class Serving
    # Seconds the application has after the core has given it up.
    GRACE = 1

    # @return [Server]
    attr_reader :server

    # @param server [Server]
    # @param log [Logger]
    # @param drain_ms [Integer] for requests in flight
    def initialize(server, log, drain_ms:)
      @server = server
      @log = log
      @drain_ms = drain_ms
      @stopping = false
    end

    # @return [Boolean]
    def stopping?
      @stopping
    end

    # Serves until stopped.
    # @return [void]
    def run
      @thread = Thread.current
      @server.run
    ensure
      @thread = nil
    end

    # Graceful the first time, at once the second time.
    # @param force [Boolean] at once
    # @return [void]
    def stop(force: @stopping)
      @stopping = true
      @server.stop(force: force)
      end_application_after(force ? 0 : @drain_ms / 1000.0)
    end

    private

    # The core cannot end what the application itself does not finish: that thread is ended, which
    # runs its `ensure`, a moment after the core has dropped the rest.
    def end_application_after(seconds)
      Thread.new do
        sleep(seconds + GRACE)
        if (thread = @thread)
          @log.say "- Ended while the application was still at a request"
          thread.kill
        end
      end
    end
  end
end
