# frozen_string_literal: true

# The molds of a cluster: the one whose workers serve, the one that is loading, and the one before,
# which is kept until every worker of the new one serves. A generation that cannot be used
# leaves the one before it serving. Everything runs on the master's loop.
# SPDX-License-Identifier: MIT

require "rondo/cluster/backoff"
require "rondo/cluster/mold_handle"
require "rondo/puma/cluster_hooks"

module Rondo
  # Boots molds and decides which one is used.
  # @api private
  class Generations
    include ClusterHooks

    # Seconds until a mold that died is started again, after so many times in a row.
    DELAYS = [0, 1, 5, 30].freeze

    # Seconds that a mold has for its last hook, when the server shall end at once.
    HURRY = 3

    # Seconds more for each hook that a mold was told to call: when one hangs, the later ones end after a second, and
    # its last hook comes after all of them.
    EACH_CALL = 2

    # What a mold that died has left: a process that one of its plugins had started.
    Orphan = Struct.new(:pid) do
      # @return [true] the next plugins begin when it has ended
      def awaited? = true

      # @return [String] for the log
      def to_s
        "a process that a plugin had started (PID: #{pid})"
      end

      # @return [void]
      def kill(signal = "KILL")
        Process.kill(signal, pid)
      rescue Errno::ESRCH
        nil
      end
    end
    private_constant :Orphan

    # @return [MoldHandle, nil] whose workers should serve
    attr_reader :current

    # @param cluster [Cluster]
    # @param command [Hash] of {Inherited.command}
    def initialize(cluster, command)
      @cluster = cluster
      @log = cluster.log
      @loop = cluster.loop
      @settings = cluster.settings
      @command = command
      @proven = false
      @backoff = Backoff.new(DELAYS)
      @leaving = {}
      @waiting_calls = []
      @loop.every(1) { end_overdue }
    end

    # @return [Boolean] whether code is being loaded that will not be used at once
    def restarting?
      !(@next.nil? || @when_ready.nil?)
    end

    # Loads the code again; a mold that is still loading is discarded.
    # @yield when it is ready, instead of using it at once
    # @return [void]
    def advance(&when_ready)
      discard(@next)
      @when_ready = when_ready
      number = @current ? [@current.generation, @previous&.generation || 0].max + 1 : 0
      @next = watch(MoldHandle.start(number, @command))
    end

    # The first mold, where the master forked it itself.
    # @param mold [MoldHandle]
    # @return [void]
    def begin_with(mold)
      @next = watch(mold)
    end

    # Takes over molds from an earlier master in this very process.
    # @param current [MoldHandle]
    # @param previous [MoldHandle, nil]
    # @return [void]
    def adopt(current, previous)
      @current = watch(current)
      @previous = previous && watch(previous)
      @proven = true
    end

    # @return [MoldHandle, nil] nil while there is none; the next one is starting then
    def mold_to_fork
      return @current if @current&.ready?

      revive if @current && !@current.alive? && @backoff.over?
      nil
    end

    # Every slot is served by the current generation.
    # @return [void]
    def reconciled
      @proven = true
      @backoff.reset
      discard(@previous)
      @previous = nil
      @booted = true
      announce
    end

    # @param mold [MoldHandle] of a worker that could not boot
    # @param reason [String]
    # @return [Boolean] whether that was the end of the generation
    def worker_failed(mold, reason)
      return false unless mold == @current

      if @previous
        say_not_used(mold, reason, @previous)
        @current, @previous = @previous, nil
        @current.socket.notify(:restarts, now: 0)
        @booted = true
        discard(mold)
        @cluster.generation_failed
        return true
      end
      @cluster.cannot_start(reason) unless @proven
      !@proven
    end

    # @param pid [Integer] of a child that has ended
    # @param status [Process::Status]
    # @return [Boolean] whether it was a mold
    def ended(pid, status)
      return left if @leaving.delete(pid)

      mold = molds.find { |each| each.pid == pid } or return false
      receive_from(mold)
      on_exit(mold, status) if molds.include?(mold)
      true
    end

    # The mold was asked for a worker and did not fork it.
    # @param mold [MoldHandle]
    # @return [void]
    def hung(mold)
      return unless molds.include?(mold) && mold.alive?

      @log.error "! Killed the mold (PID: #{mold.pid}): it no longer forks workers"
      mold.kill
    end

    # @param message [Symbol]
    # @param fields [Hash{Symbol => #to_s}]
    # @return [void]
    def notify_all(message, **fields)
      molds.each { |mold| mold.socket.notify(message, **fields) }
    end

    # @return [Array<MoldHandle>]
    def molds
      [@current, @next, @previous].compact
    end

    # @return [Array<Integer>] of all molds, also of those that are leaving
    def pids
      molds.filter_map(&:pid) + @leaving.keys
    end

    # @return [MoldHandle, nil] whose successor is `current`
    attr_reader :previous

    # The one that was loaded becomes the current one without anybody being replaced here.
    # @return [MoldHandle]
    def detach_next
      mold = @next
      @next = nil
      call_what_waits(mold)
      mold
    end

    # Discards the mold of {#detach_next}, which could not be used.
    # @param mold [MoldHandle]
    # @return [void]
    def refuse(mold)
      @restart_told = false
      discard(mold)
    end

    # Those with plugins or hooks are told when the last worker has ended: see {#all_ended?}.
    # @param force [Boolean] they do not wait for these either
    # @return [void]
    def stop(force: false)
      @booted = false
      molds.each(&:hurry) if force
      hurry_those_that_leave if force
      without = molds.reject { |mold| mold.awaited? && mold.ready? }
      without.each { |mold| finish(mold) }
      @current, @next, @previous = [@current, @next, @previous].map { |mold| mold unless without.include?(mold) }
    end

    # Asked when no worker is left.
    # @return [Boolean] whether the plugins and hooks of all molds have ended, too
    def all_ended?
      molds.each { |mold| finish(mold) }
      drop_calls
      @current = @next = @previous = nil
      none_leaving?
    end

    private

    # @return [true]
    def left
      announce
      use_next if @when_ready && @next&.ready?
      true
    end

    # The server ends, and not only this generation. A mold that has died leaves what there was to do.
    def finish(mold)
      if mold.ready?
        mold.socket.notify(:finish, alone: molds.one? ? 1 : 0, hurry: mold.hurried ? 1 : 0)
      else
        say_uncalled(mold.hooks & ["after_stopped"])
      end
      discard(mold)
    end

    # The next master would not know of molds whose plugins are ending.
    def use_next
      return unless none_leaving?
      return @when_ready.call if @restart_told

      tell_of_restart unless @telling
    end

    # There are never the plugins of two generations.
    def announce
      @cluster.notify_booted(@current) if @booted && @current && none_leaving?
    end

    def none_leaving?
      @leaving.each_value.none? { |mold, _due| mold.awaited? }
    end

    def watch(mold)
      @cluster.introduce(mold)
      @loop.watch(mold.socket.io) { receive_from(mold) }
      mold
    end

    def receive_from(mold)
      until mold.socket.closed? || (message = mold.socket.receive_now) == false
        return @loop.unwatch(mold.socket.io) if message.nil?

        on_message(mold, message)
      end
    end

    def on_message(mold, message)
      case message.kind
      when :ready
        mold.program = program_of(message)
        mold.plugins = message.number(:plugins) == 1
        mold.children = pids_of(message[:children])
        mold.hooks = message[:hooks].to_s.split(",")
        note_late(message[:alone].to_s.split(","))
        ready(mold, message[:threads])
      when :failed then failed(mold, message[:message])
      when :not_forked then @cluster.not_forked(message)
      when :children then mold.children = pids_of(message[:pids])
      when :asks then @cluster.asked(message[:verb])
      when :begun then mold.hook_begun
      when :called then mold.hook_called
      end
    end

    def pids_of(text)
      text.to_s.split(",").map(&:to_i)
    end

    # For all molds to come, also those of the next master.
    def note_late(names)
      return if names.empty?

      ENV[MoldHandle::LATE] = [*ENV[MoldHandle::LATE].to_s.split(","), *names].uniq.join(",")
    end

    # @return [String, nil] nil: none, or this process had no room for its descriptor
    def program_of(message)
      file, = message.ios
      file&.pread(file.stat.size, 0)
    ensure
      file&.close
    end

    def ready(mold, threads)
      mold.state = :ready
      @log.say "! #{threads}" unless threads.to_s.empty?
      return take_over_plugins unless mold == @next

      return use_next if @when_ready

      @booted = false
      @previous = @current&.ready? ? @current : discard(@current)
      @current = detach_next
      @cluster.reconcile
    end

    # In place of a mold that has died.
    def take_over_plugins
      call_what_waits(@current)
      announce
      @cluster.reconcile
    end

    def failed(mold, reason)
      mold.state = :failed
      return not_revived(mold, reason) if mold == @current
      return unless mold == @next

      @next = nil
      @restart_told = false
      discard(mold)
      return @cluster.cannot_start(reason) unless @current

      say_not_used(mold, reason, @current)
      @cluster.generation_failed
    end

    def say_not_used(mold, reason, other)
      @log.error "! Generation #{mold.generation} is not used: #{reason}; " \
                 "generation #{other.generation} keeps serving"
    end

    def on_exit(mold, status)
      return if mold.state == :ended # it was discarded

      @loop.unwatch(mold.socket.io)
      words = status.signaled? ? "SIG#{Signal.signame(status.termsig)}" : "status #{status.exitstatus}"
      return failed(mold, "the mold ended with #{words} while it loaded the application") if mold == @next

      mold.stop
      end_orphans(mold)
      keep_calls(mold, words)
      return if @cluster.stopping?

      soon = again(mold)
      @log.error "! The mold (PID: #{mold.pid}) ended with #{words}; the next one #{soon}"
      @previous = nil if mold == @previous
      @backoff.failed
    end

    def again(mold)
      return "starts when a worker is needed" unless mold == @current && mold.awaited?

      mold.plugins ? "starts for its plugins" : "starts for its hooks"
    end

    # Not what the application has started: it may outlive its workers.
    def end_orphans(mold)
      (mold.children & @cluster.orphans).each do |pid|
        orphan = Orphan.new(pid)
        orphan.kill("TERM")
        @leaving[pid] = [orphan, ProcessLoop.now + @settings[:worker_shutdown_timeout]]
      end
    end

    def not_revived(mold, reason)
      @log.error "! The mold cannot be started again: #{reason}"
      discard(mold)
      @backoff.failed
    end

    # The same generation again.
    def revive
      plugins, hooks = @current.plugins, @current.hooks
      @current = watch(MoldHandle.start(@current.generation, @command))
      @current.plugins, @current.hooks = plugins, hooks
    rescue Error => e
      @backoff.failed
      @log.error "! #{e.message}"
    end

    # @return [nil]
    def discard(mold)
      return unless mold&.pid

      @loop.unwatch(mold.socket.io)
      mold.kill if mold.loading?
      patience = mold.hurried ? HURRY : @settings[:worker_shutdown_timeout] + (mold.calls.size * EACH_CALL)
      @leaving[mold.pid] = [mold, ProcessLoop.now + patience] if mold.ready?
      mold.stop
      nil
    end

    def end_overdue
      end_those_that_stay
      mold_to_fork if @booted && @current&.awaited? # nothing else asks for one while all workers live
      limit = @settings[:mold_boot_timeout]
      mold = [@next, @current].compact.find(&:loading?) or return
      return unless limit.positive? && ProcessLoop.now - mold.started > limit

      failed(mold, "its application did not load within #{limit} s")
      mold.kill
    end

    # They were told to end when nothing was in a hurry yet.
    def hurry_those_that_leave
      soon = ProcessLoop.now + HURRY
      @leaving.each_value do |entry|
        entry.first.hurry unless entry.first.is_a?(Orphan)
        entry[1] = [entry[1], soon].min unless entry[1] == Float::INFINITY
      end
    end

    # Code that the application runs at its end may never return.
    def end_those_that_stay
      @leaving.each_value do |entry|
        mold, due = entry
        next unless due < ProcessLoop.now

        mold.kill
        entry[1] = Float::INFINITY # once
        @log.error "! Killed #{mold}: it took too long to end"
      end
    end
  end
end
