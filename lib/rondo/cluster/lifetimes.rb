# frozen_string_literal: true

# How long a worker lives: a number of requests, an amount of memory, an age. Each worker gets limits
# of its own, up to `recycle_jitter` percent lower, so that workers that started together do not end
# together. The supervisor replaces them one at a time, the replacement first. Also how long a worker may
# take to boot, to give a sign of life and to stop.
# SPDX-License-Identifier: MIT

require "rondo/process/process_loop"

module Rondo
  # The limits, and the workers that have reached them.
  # @api private
  class Lifetimes
    FIELDS = { rss: ["status", /^VmRSS:\s+(\d+) kB/], pss: ["smaps_rollup", /^Pss:\s+(\d+) kB/] }.freeze

    # @param pid [Integer]
    # @param measure [Symbol] :rss; or :pss, which counts a page that n processes share as 1/n
    # @return [Integer] bytes; 0 where it cannot be read
    def self.memory(pid, measure = :rss, proc_folder: "/proc")
      file, pattern = FIELDS.fetch(measure)
      File.read("#{proc_folder}/#{pid}/#{file}")[pattern, 1].to_i * 1024
    rescue SystemCallError
      0
    end

    # For the end of the application after the drain, in seconds, before the kernel ends the worker.
    LAST_GRACE = 2
    # Seconds that a worker has after it was told to stop at once.
    HURRY = 3

    # @param settings [Settings::Resolved]
    def initialize(settings)
      @settings = settings
      @limits = { requests: settings[:max_requests], memory: settings[:max_memory], age: settings[:max_age] }
                .select { |_, limit| limit.positive? }
      @jitter = settings[:recycle_jitter] / 100.0
      @measure = settings[:memory_measure].to_sym
    end

    # @return [Hash{Symbol => Numeric}] for a new worker
    def choose
      @limits.transform_values { |limit| (limit * (1 - (rand * @jitter))).ceil }
    end

    # @param worker [WorkerHandle]
    # @return [String, nil] what it has reached, in words
    def reached(worker)
      limits = worker.limits
      if limits[:requests]&.<=(worker.requests) then "#{worker.requests} requests"
      elsif limits[:age]&.<=(worker.age) then "#{worker.age.round} s old"
      elsif limits[:memory] then reached_memory(worker)
      end
    end

    # An exception may not reach a thread that hangs, so its process has to end.
    # @param worker [WorkerHandle]
    # @param board [Scoreboard]
    # @return [String, nil] how long a request has been inside, if that is too long
    def hung_request(worker, board)
      limit = @settings[:hard_request_timeout_ms] / 1000.0
      return unless limit.positive? && worker.seat

      began = board.get(worker.seat, :oldest_call_ms)
      seconds = ProcessLoop.now - (began / 1000.0)
      "a request has been in the application for #{seconds.round} s" if began.positive? && seconds > limit
    end

    # @param worker [WorkerHandle]
    # @return [Numeric, nil] the seconds it had for what it is doing, if they are over
    def overdue(worker)
      limit = limit_of(worker)
      limit if limit.positive? && ProcessLoop.now - beginning_of(worker) > limit
    end

    # @param worker [WorkerHandle]
    # @param limit [Numeric] of {#overdue}
    # @return [String]
    def overdue_in_words(worker, limit)
      return "it was not ready after #{limit} s" if worker.booting?

      return "it did not check in within #{limit} s" unless worker.stopping?

      "it did not end within #{limit} s after it was told to stop#{" at once" if worker.hurried}"
    end

    private

    # A worker that ends goes on giving signs of life. One that is not forked yet waits behind others.
    def beginning_of(worker)
      return worker.checked_in unless worker.stopping? && worker.pid

      worker.hurried || worker.since
    end

    def limit_of(worker)
      return HURRY if worker.hurried
      return @settings[:worker_shutdown_timeout] + LAST_GRACE if worker.stopping?

      @settings[worker.booting? ? :worker_boot_timeout : :worker_timeout]
    end

    def reached_memory(worker)
      bytes = Lifetimes.memory(worker.pid, @measure)
      "#{bytes >> 20} MiB of memory (#{@measure})" if bytes >= worker.limits[:memory]
    end
  end
end
