# frozen_string_literal: true

# The seats of workers on the scoreboard. A slot has two rows, because two workers write while one takes over from the
# other. The master writes the numbers that it knows of a worker; the worker writes the others.
# SPDX-License-Identifier: MIT

require "rondo/process/process_loop"

module Rondo
  # Rows of the scoreboard and the workers that have them. A worker of an earlier master has none.
  # @api private
  class Seats
    # @param board [Scoreboard] with two rows for each slot
    # @param room [Integer] slots there may ever be
    def initialize(board, room)
      @board = board
      @room = room
    end

    # @param index [Integer] of a slot
    # @param workers [Array<WorkerHandle>] all there are
    # @return [Integer, nil] a row that none of them has
    def free(index, workers)
      ([index, index + @room] - workers.map(&:seat)).first
    end

    # A worker begins.
    # @param worker [WorkerHandle]
    # @return [void]
    def occupy(worker)
      @board.clear(worker.seat)
      set(worker, :generation, worker.mold.generation)
      set(worker, :started_ms, now_ms)
      enter(worker, :booting)
    end

    # @param worker [WorkerHandle]
    # @return [void]
    def ready(worker)
      enter(worker, :ready)
      set(worker, :ready_ms, now_ms)
    end

    # @param worker [WorkerHandle]
    # @param state [Symbol] of Scoreboard::STATES
    # @return [void]
    def enter(worker, state)
      set(worker, :state, Scoreboard::STATES.index(state))
    end

    # @param worker [WorkerHandle]
    # @param name [Symbol] of a number of the scoreboard
    # @param value [Integer]
    # @return [void]
    def set(worker, name, value)
      @board.set(worker.seat, name, value) if worker.seat
    end

    # A worker has ended.
    # @param worker [WorkerHandle]
    # @return [void]
    def vacate(worker)
      @board.clear(worker.seat) if worker.seat
    end

    private

    def now_ms
      (ProcessLoop.now * 1000).to_i
    end
  end
end
