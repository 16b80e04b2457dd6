# frozen_string_literal: true

# What makes a server restart or stop without a signal: tmp/restart.txt, which `bin/rails restart` touches, and
# idle_timeout.
# SPDX-License-Identifier: MIT

module Rondo
  # Knows whether the file was touched since it last looked.
  # @api private
  class RestartFile
    # @param path [String]
    def initialize(path = File.expand_path("tmp/restart.txt"))
      @path = path
      @before = modified
    end

    # @return [Boolean]
    def touched?
      now = modified
      return false if now == @before

      @before = now
      true
    end

    private

    def modified
      File.mtime(@path)
    rescue SystemCallError
      nil
    end
  end

  # Knows how long a server has had nothing to do.
  # @api private
  class IdleTime
    # Numbers of the scoreboard that grow while there is work.
    COUNTERS = %i[requests static_answers bytes_in bytes_out].freeze
    # Numbers that are not zero while there is work.
    GAUGES = %i[under_way queue busy upgraded tasks_running output_bytes].freeze
    private_constant :COUNTERS, :GAUGES

    # @param board [Scoreboard] a row for each process that serves
    # @param limit [Numeric] seconds
    def initialize(board, limit)
      @board = board
      @limit = limit
      @since = now
    end

    # Asked about once a second.
    # @return [Boolean] whether that lasts for longer than the limit
    def over?
      rows = Array.new(@board.size) { |index| @board.row(index) }.reject { |row| row[:pid].zero? }
      seen = rows.map { |row| [row[:pid], row.values_at(*COUNTERS)] }
      @since = now if seen != @seen || rows.any? { |row| row.values_at(*GAUGES).any?(&:positive?) }
      @seen = seen
      now - @since >= @limit
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
