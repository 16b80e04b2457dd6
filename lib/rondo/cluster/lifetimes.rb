# frozen_string_literal: true

# How long a worker lives: a number of requests, an amount of memory, an age. Each worker gets limits
# of its own, up to `recycle_jitter` percent lower, so that workers that started together do not end
# together. The supervisor replaces them one at a time, the replacement first.
# SPDX-License-Identifier: MIT

module Rondo
  # Limits, and who has reached them.
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

    # @param settings [Settings::Resolved]
    def initialize(settings)
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

    private

    def reached_memory(worker)
      bytes = Lifetimes.memory(worker.pid, @measure)
      "#{bytes >> 20} MiB of memory (#{@measure})" if bytes >= worker.limits[:memory]
    end
  end
end
