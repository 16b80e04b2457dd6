# frozen_string_literal: true

# The molds of a cluster: the one whose workers serve, the one that is loading, and the one before,
# which is kept until every worker of the new one serves. A generation that cannot be used
# leaves the one before it serving. Everything runs on the master's loop.
# SPDX-License-Identifier: MIT

require "rondo/cluster/backoff"
require "rondo/cluster/mold_handle"

module Rondo
  # Boots molds and decides which one is used.
  class Generations
    # Seconds until a mold that died is started again, after so many times in a row.
    DELAYS = [0, 1, 5, 30].freeze

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
    end

    # @param mold [MoldHandle] of a worker that could not boot
    # @param reason [String]
    # @return [Boolean] whether that was the end of the generation
    def worker_failed(mold, reason)
      return false unless mold == @current

      if @previous
        say_not_used(mold, reason, @previous)
        @current, @previous = @previous, nil
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
      return true if @leaving.delete(pid)

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
    # @return [void]
    def notify_all(message)
      molds.each { |mold| mold.socket.notify(message) }
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
      @next.tap { @next = nil }
    end

    # Discards the mold of {#detach_next}, which could not be used.
    # @param mold [MoldHandle]
    # @return [void]
    def refuse(mold)
      discard(mold)
    end

    # @return [void]
    def stop
      molds.each { |mold| discard(mold) }
      @current = @next = @previous = nil
    end

    private

    def watch(mold)
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
        ready(mold, message[:threads])
      when :failed then failed(mold, message[:message])
      when :not_forked then @cluster.not_forked(message)
      end
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
      return @cluster.reconcile unless mold == @next

      return @when_ready.call if @when_ready

      @previous = @current&.ready? ? @current : discard(@current)
      @current = detach_next
      @cluster.reconcile
    end

    def failed(mold, reason)
      mold.state = :failed
      return not_revived(mold, reason) if mold == @current
      return unless mold == @next

      @next = nil
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

      @log.error "! The mold (PID: #{mold.pid}) ended with #{words}; the next one starts when a worker is needed"
      mold.stop
      @previous = nil if mold == @previous
      @backoff.failed
    end

    def not_revived(mold, reason)
      @log.error "! The mold cannot be started again: #{reason}"
      discard(mold)
      @backoff.failed
    end

    # The same generation again.
    def revive
      @current = watch(MoldHandle.start(@current.generation, @command))
    rescue Error => e
      @backoff.failed
      @log.error "! #{e.message}"
    end

    # @return [nil]
    def discard(mold)
      return unless mold&.pid

      @loop.unwatch(mold.socket.io)
      mold.kill if mold.loading?
      @leaving[mold.pid] = [mold, ProcessLoop.now + @settings[:worker_shutdown_timeout]] if mold.ready?
      mold.stop
      nil
    end

    def end_overdue
      end_those_that_stay
      limit = @settings[:mold_boot_timeout]
      mold = [@next, @current].compact.find(&:loading?) or return
      return unless limit.positive? && ProcessLoop.now - mold.started > limit

      failed(mold, "its application did not load within #{limit} s")
      mold.kill
    end

    # Code that the application runs at its end may never return.
    def end_those_that_stay
      @leaving.each_value { |mold, due| mold.kill if due < ProcessLoop.now }
    end
  end
end
