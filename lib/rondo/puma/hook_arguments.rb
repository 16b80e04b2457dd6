# frozen_string_literal: true

# What hooks get as in Puma, where that is no plain number: the worker that has ended, and the threads of a server.
# SPDX-License-Identifier: MIT

require "rondo/boot/error"

module Rondo
  # How a process ended that this one has not waited for: the methods of Process::Status.
  # @api private
  class EndedStatus
    # @return [Integer]
    attr_reader :pid
    # @return [Integer] the word of wait(2)
    attr_reader :to_i

    # @param pid [Integer]
    # @param word [Integer] of wait(2)
    def initialize(pid, word)
      @pid = pid
      @to_i = word
    end

    # @return [Boolean]
    def exited?
      @to_i.nobits?(0x7f)
    end

    # @return [Boolean] whether a signal has ended it
    def signaled?
      !exited?
    end

    # @return [Boolean] false: it has ended
    def stopped?
      false
    end

    # @return [Integer, nil] nil: a signal has ended it
    def exitstatus
      (@to_i >> 8) & 0xff if exited?
    end

    # @return [Integer, nil]
    def termsig
      @to_i & 0x7f if signaled?
    end

    # @return [nil] it has ended
    def stopsig
      nil
    end

    # @return [Boolean]
    def coredump?
      @to_i.anybits?(0x80)
    end

    # @return [Boolean, nil] nil: a signal has ended it
    def success?
      exitstatus&.zero?
    end

    # @param other [Object]
    # @return [Boolean]
    def ==(other)
      other.respond_to?(:to_i) && to_i == other.to_i
    end

    # @return [String]
    def to_s
      how = exited? ? "exit #{exitstatus}" : "SIG#{Signal.signame(termsig)} (signal #{termsig})"
      "pid #{pid} #{how}#{" (core dumped)" if coredump?}"
    end

    # @return [String]
    def inspect
      "#<#{self.class}: #{self}>"
    end
  end

  # A worker that has ended, for `after_worker_shutdown`: what Puma's handle of a worker answers then.
  # @api private
  class EndedWorker
    # @return [Integer] its slot
    attr_reader :index
    # @return [Integer]
    attr_reader :pid
    # @return [Integer] its generation
    attr_reader :phase
    # @return [EndedStatus]
    attr_reader :process_status
    # @return [Time]
    attr_reader :started_at

    # @param fields [Hash{Symbol => Integer}] index, pid, phase, status (the word of wait(2)), age (seconds)
    def initialize(fields)
      @index, @pid, @phase = fields.values_at(:index, :pid, :phase)
      @process_status = EndedStatus.new(@pid, fields.fetch(:status))
      @started_at = Time.now - fields.fetch(:age)
      @began = now - fields.fetch(:age)
    end

    # @return [Float] seconds that it has lived
    def uptime
      now - @began
    end

    # @return [String]
    def inspect
      "#<#{self.class} #{index} (PID: #{pid}) #{process_status}>"
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # The threads of a server, for `before_thread_start`.
  # @api private
  class ThreadControl
    # @param options [Configuration::PumaOptions]
    def initialize(options)
      @options = options
    end

    # @return [Integer]
    def min_threads
      @options[:min_threads]
    end

    # @return [Integer]
    def max_threads
      @options[:max_threads]
    end

    # @raise [Error] always: these numbers do not change while the server runs
    def update_thread_pool_min_max(**)
      raise Error, "the number of threads cannot change while the server runs: set threads in the configuration file"
    end
  end
end
