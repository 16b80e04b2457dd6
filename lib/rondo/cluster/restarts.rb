# frozen_string_literal: true

# How the master restarts: by workers of the next mold (generations.rb), or by a program that replaces this one
# (takeover.rb). Also the notice before a stop, in which no restart begins. On the master's thread.
# SPDX-License-Identifier: MIT

require "rondo/cluster/takeover"

module Rondo
  class Cluster
    # The restarts of a {Cluster}, and the notice before its stop.
    module Restarts
      # Somebody has sent it TERM. If this process has got that, too, it handles it first, and its own order counts.
      # @param worker [WorkerHandle]
      # @return [void]
      def worker_asks(worker)
        @loop.post do
          next if leaving?

          @supervisor.replace(worker, "TERM")
          @supervisor.reconcile
        end
      end

      private

      # From now on the server is not ready, and accepts connections for a while.
      # @return [Boolean] false: it has done so before, or does not
      def give_notice
        seconds = @settings[:drain_delay]
        return false if seconds.zero? || leaving? || !@listening

        @notice = true
        @control&.leave
        @log.say Serving.notice(seconds)
        @loop.after(seconds) { stop_now unless @stopping }
        true
      end

      # Then nothing new begins that a stop would end.
      def leaving?
        @stopping || @notice
      end

      # @param what [String] was asked for
      # @return [Boolean] whether the server stops instead; the log has a line then
      def refuse?(what)
        return false unless leaving?

        @restart_again = false
        @log.say "- No #{what}: this server stops"
        true
      end

      def phased_restart_now
        return if refuse?("restart") || !@listening
        return restart_now if @generations.restarting? # a restart does more, and begins again
        return @restart_again = true if @generations.previous # one at a time: the newest code comes last

        @restart_again = @reconciled = false
        @renewed = true
        @reforking = nil # it replaces the workers, too, and the mold that has been asked may be gone before it answers
        @log.say "- Starting phased restart"
        @certificates.request
        @systemd.reloading
        @generations.advance
      rescue Error => e
        @log.error "! #{e.message}"
      end

      # The mold has the application as it was loaded: workers that come from it share its memory again.
      def refork_now
        return if refuse?("refork") || !@listening || @reforking
        if @generations.restarting? || @generations.previous
          return @log.say "- No refork: a restart replaces the workers"
        end

        @log.say "- Starting worker refork"
        @renewed = true
        @reforking = :begins
        @generations.call_hook(nil, "before_refork") do
          next unless @reforking

          @reforking = :goes_on
          @reconciled = false
          @supervisor.replace_all("refork")
        end
      end

      # Once, and only while the workers are those of the start, as Puma does.
      def refork_when_due(worker)
        limit = @settings[:refork_after]
        return if leaving? || @renewed || limit.zero? || worker.index.positive? || worker.requests < limit
        return if @generations.restarting? || @generations.previous

        refork_now
      end

      def note_refork
        return if @reforking != :goes_on || @supervisor.replacing?

        @reforking = nil
        @generations.call_hook(nil, "after_refork")
      end

      # The code is loaded first: if that fails, nothing has changed.
      def restart_now
        return if refuse?("restart") || !@listening

        @log.say "- Restarting: loading the application"
        @reconciled = @restart_again = false
        @systemd.reloading
        @generations.advance { exec_again }
      rescue Error => e
        @log.error "! #{e.message}"
      end

      # Returns only where nothing could be executed, or the server stops.
      def exec_again
        return if leaving?

        current = @generations.detach_next
        command = successor_of(current) or return
        previous = @generations.current&.ready? ? @generations.current : nil
        previous&.socket&.notify(:restarts, now: 1)
        @log.say "- Restarting..."
        Takeover.new(self, @control, command).exec(current, previous, @setup.environment_before)
        stay(current)
      end

      # @return [Hash, nil] the command of the next master; nil: there is none, and this one continues
      def successor_of(mold)
        return @successor.call(mold) if @successor

        Inherited.command_of_restart(@again, @settings[:restart_command])
      rescue Error => e
        @log.error "! #{e.message}"
        @generations.refuse(mold)
        generation_failed
        nil
      end

      # No program could replace this one: it continues.
      def stay(mold)
        trap_signals
        @generations.notify_all(:restarts, now: 0)
        @hub.go_on
        @engine&.go_on
        @metrics&.go_on
        go_on_fetching
        @loop.post { reap }
        @generations.refuse(mold)
        if @control
          open_control
          write_files # it may have another token
          watch_queues
          tell_of_certificates
        end
        generation_failed
      end

      def go_on_fetching
        @fetched&.go_on
      rescue Error => e
        @log.error "! #{e.message}"
      end
    end
  end
end
