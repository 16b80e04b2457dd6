# frozen_string_literal: true

# What a master hands to the program that replaces it by exec: molds and workers, with the sockets to
# them. The process id and the children stay the same, so the old workers serve until the new ones are
# ready. Listening sockets are handed over as in every restart (inherited.rb).
# SPDX-License-Identifier: MIT

require "rondo/cluster/mold_handle"
require "rondo/cluster/worker_handle"

module Rondo
  # Molds and workers in an environment variable.
  # @api private
  class Succession
    VARIABLE = "RONDO_SUCCESSION"

    # @return [MoldHandle, nil] the one with the new code
    attr_reader :current
    # @return [MoldHandle, nil] the one before
    attr_reader :previous
    # @return [Array<WorkerHandle>]
    attr_reader :workers

    # @return [Boolean] whether this process replaces one with workers
    def self.pending?(env = ENV)
      env.key?(VARIABLE)
    end

    # @param env [Hash] the variable is removed
    # @return [Succession, nil] nil in a process that replaces none
    def self.extract(env = ENV)
      text = env.delete(VARIABLE)
      text && new(*text.split(";").partition { |entry| entry.start_with?("mold") })
    end

    # For a process that continues without workers: the workers finish their requests and end.
    # @return [void]
    def dismiss
      [@current, @previous].compact.each { |mold| mold.socket.close }
      @workers.each { |worker| worker.socket.notify(:stop) }
      [@current, @previous, *@workers].compact.each { |handle| Process.detach(handle.pid) }
    end

    # @param current [MoldHandle]
    # @param previous [MoldHandle, nil]
    # @param workers [Array<WorkerHandle>]
    # @return [Array(String, Array<IO>)] the variable's value, and what has to stay open
    def self.hand_on(current, previous, workers)
      molds = [current, previous].compact.map do |mold|
        ["mold", mold.pid, mold.socket.fileno, mold.generation, mold.state, mold.plugins ? 1 : 0,
         mold.hooks.join("+")]
      end
      known = workers.select(&:pid)
      entries = known.map do |worker|
        ["worker", worker.pid, worker.socket.fileno, worker.mold.generation, worker.state, worker.index, worker.link]
      end
      sockets = [current, previous, *known].compact.map { |handle| handle.socket.io }
      sockets.each { |socket| socket.close_on_exec = false }
      [[*molds, *entries].map { |entry| entry.join(",") }.join(";"), sockets]
    end

    # @param molds [Array<String>] entries
    # @param workers [Array<String>] entries
    def initialize(molds, workers)
      @current, @previous = molds.map { |entry| mold(entry) }
      @workers = workers.map { |entry| worker(entry) }
    end

    private

    def mold(entry)
      _, pid, descriptor, generation, state, plugins, hooks = entry.split(",")
      mold = MoldHandle.new(generation: generation.to_i, pid: pid.to_i, socket: MessageSocket.adopt(descriptor.to_i),
                            state: state.to_sym)
      mold.plugins = plugins == "1"
      mold.hooks = hooks.to_s.split("+")
      mold
    end

    # Its row was on the scoreboard of the master before.
    def worker(entry)
      _, pid, descriptor, generation, state, index, link = entry.split(",")
      mold = [@previous, @current].compact.find { |each| each.generation == generation.to_i } ||
             MoldHandle.new(generation: generation.to_i, pid: nil, socket: nil, state: :ended)
      WorkerHandle.new(index: index.to_i, seat: nil, mold: mold, socket: MessageSocket.adopt(descriptor.to_i),
                       pid: pid.to_i, state: state.to_sym, link: link&.to_i)
    end
  end
end
