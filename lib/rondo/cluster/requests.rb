# frozen_string_literal: true

# What other threads ask the master for: the control server, systemd, an application that embeds it. Each
# request is posted to the master's loop, which does it (cluster.rb).
# SPDX-License-Identifier: MIT

require "rondo/boot/process_setup"

module Rondo
  class Cluster
    # Methods of a {Cluster} that any thread may call.
    module Requests
      # @return [Hash{String => Integer}] none for other programs: sockets are handed on by the server itself
      def descriptors
        {}
      end

      # Graceful the first time, at once the second time.
      # @return [void]
      def stop
        @loop.post { stop_now }
      end

      # At once.
      # @return [void]
      def halt
        @loop.post { stop_now(force: true) }
      end

      # The whole server again, by exec, with the same sockets; the old workers serve until the new ones
      # are ready.
      # @return [void]
      def restart
        @loop.post { restart_now }
      end

      # New code, one worker after the other.
      # @return [void]
      def phased_restart
        @loop.post { phased_restart_now }
      end

      # New workers of the same code, one after the other.
      # @return [void]
      def refork
        @loop.post { refork_now }
      end

      # Changes nothing: molds and restarts go to the directory by its path, which may lead elsewhere now.
      # @return [void]
      def reload_worker_directory
        @loop.post { @log.say "- The next phased restart or restart goes to #{@again[:folder]} anew" }
      end

      # @return [void]
      def worker_count_up
        @loop.post { grow }
      end

      # @return [void]
      def worker_count_down
        @loop.post { shrink }
      end

      # @return [void]
      def reopen_logs
        @loop.post { reopen }
      end

      # @return [void]
      def reload_certificates
        @loop.post { @certificates&.request }
      end

      # Workers write theirs to the log.
      # @return [String] those of this process
      def thread_backtraces
        @loop.post { @supervisor.notify_all(:backtraces) }
        ProcessSetup.thread_backtraces("Master (PID: #{Process.pid}):")
      end
    end
  end
end
