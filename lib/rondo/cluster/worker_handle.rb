# frozen_string_literal: true

# A worker as the master sees it: its slot, its state and its last message. The process itself is in
# worker.rb.
# SPDX-License-Identifier: MIT

require "rondo/process/process_loop"

module Rondo
  # One worker process, from the request to fork it to its end. Hooks of the configuration get it.
  # @api private
  class WorkerHandle
    # @!attribute [r] index
    #   @return [Integer] of its slot
    # @!attribute [r] seat
    #   @return [Integer, nil] its row of the scoreboard; nil when it was forked by an earlier master
    # @!attribute [r] mold
    #   @return [MoldHandle] where it was forked
    # @!attribute [r] socket
    #   @return [MessageSocket]
    # @!attribute [r] link
    #   @return [Integer, nil] its number at the hub
    attr_reader :index, :seat, :mold, :socket, :link
    # @return [Integer, nil] nil until the worker has sent it
    attr_accessor :pid
    # @return [Integer] requests it has answered, as far as is known
    attr_accessor :requests
    # @return [String, nil] why it cannot serve
    attr_accessor :failure
    # @return [String, nil] why it is to be replaced
    attr_accessor :worn_out
    # @return [Process::Status, nil] after its end
    attr_accessor :process_status
    # @return [Hash{Symbol => Numeric}] how long it may live; see {Lifetimes}
    attr_accessor :limits
    # @return [Symbol] :booting, :ready, :stopping, :ended
    attr_reader :state
    # @return [Float] seconds of the monotonic clock, of the last change and of the last sign of life
    attr_reader :since, :checked_in
    # @return [Float, nil] when it was first told to end at once
    attr_reader :hurried

    # @param pid [Integer, nil]
    # @param state [Symbol] see {#state}; the others as the readers of the same name
    def initialize(index:, seat:, mold:, socket:, link: nil, pid: nil, state: :booting)
      @index = index
      @seat = seat
      @mold = mold
      @socket = socket
      @link = link
      @pid = pid
      @state = state
      @requests = 0
      @limits = {}
      @killed = false
      @started = @since = @checked_in = ProcessLoop.now
    end

    # @param state [Symbol] see {#state}
    # @return [void]
    def enter(state)
      @state = state
      @since = @checked_in = ProcessLoop.now
    end

    # @return [void]
    def check_in
      @checked_in = ProcessLoop.now
    end

    # @return [Float] seconds since the master asked for it
    def age
      ProcessLoop.now - @started
    end

    # @return [Boolean]
    def booting?
      @state == :booting
    end

    # @return [Boolean]
    def ready?
      @state == :ready
    end

    # @return [Boolean]
    def stopping?
      @state == :stopping
    end

    # @return [Boolean]
    def ended?
      @state == :ended
    end

    # Asks it to finish; again: the same.
    # @param force [Boolean] at once
    # @param ends [Boolean] the whole server does: it says what it waits for
    # @return [Boolean] false when the worker is gone
    def stop(force: false, ends: false)
      enter(:stopping) unless stopping?
      @hurried ||= ProcessLoop.now if force
      return @socket.notify(:halt) if force

      ends ? @socket.notify(:stop, ends: 1) : @socket.notify(:stop)
    end

    # Ends it at once.
    # @return [Boolean] false when it was killed before, or when its pid is not known
    def kill
      return false if @killed || @pid.nil?

      @killed = true
      Process.kill("KILL", @pid)
      true
    rescue Errno::ESRCH
      true
    end

    # @return [String] for lines of the log
    def to_s
      "Worker #{@index} (PID: #{@pid || "unknown"})"
    end

    # @return [String] "status 1", "SIGKILL"
    def end_in_words
      return "ended" unless @process_status
      return "ended by SIG#{Signal.signame(@process_status.termsig)}" if @process_status.signaled?

      "ended with status #{@process_status.exitstatus}"
    end
  end
end
