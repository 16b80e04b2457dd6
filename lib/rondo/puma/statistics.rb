# frozen_string_literal: true

# What Puma.stats says: the keys of Puma 8, read from the scoreboard. So they are true in every process of a server.
# SPDX-License-Identifier: MIT

require "rondo/version"

module Rondo
  # Answers `stats` as a launcher of Puma does.
  # @api private
  class PumaStatistics
    # States of a worker that has booted.
    BOOTED = %i[ready draining].freeze
    # What a process without a server has.
    NOBODY = Hash.new(0).freeze
    private_constant :NOBODY

    # @param board [Scoreboard, nil] nil: there is none yet, or the server has it to itself
    # @param server [Server, nil] asked if there is no scoreboard
    # @param cluster [Boolean] whether the rows are workers; then rows i and i + half are of the same slot
    def initialize(board, server: nil, cluster: false)
      @board = board
      @server = server
      @cluster = cluster
      @started = Time.now
    end

    # @return [Scoreboard, nil]
    attr_accessor :board

    # @return [Boolean]
    def cluster?
      @cluster
    end

    # @return [Hash{Symbol => Object}]
    def stats
      @cluster ? of_cluster : { started_at: utc(@started), **status(single_row), versions: versions }
    end

    # @param row [Hash{Symbol => Integer}] of the scoreboard
    # @return [Hash{Symbol => Integer}]
    def status(row)
      most, busy = row.values_at(:max_threads, :busy)
      { backlog: row[:queue], running: row[:threads], pool_capacity: [most - busy, 0].max, busy_threads: busy,
        max_threads: most, requests_count: row[:requests], backlog_max: row[:max_queue_seen],
        reactor_max: row[:connections], io_threads: 0 }
    end

    # @return [Hash{Symbol => Integer}] of the process that serves without workers
    def single_row
      return @server.stats if @server # newer than the scoreboard

      @board ? @board.row(0) : NOBODY
    end

    private

    def of_cluster
      rows = used_rows
      newest = rows.map { |_, row| row[:generation] }.max || 0
      { started_at: utc(@started), workers: rows.size, phase: newest,
        booted_workers: rows.count { |_, row| booted?(row) },
        old_workers: rows.count { |_, row| row[:generation] < newest },
        worker_status: rows.map { |index, row| worker(index, row) }, versions: versions }
    end

    # @return [Array<Array(Integer, Hash)>] number of the slot, row
    def used_rows
      return [] unless @board

      room = @board.size / 2
      (0...@board.size).map { |number| [number % room, @board.row(number)] }
                       .reject { |_, row| state(row) == :empty }.sort_by(&:first)
    end

    def worker(index, row)
      { started_at: time(row[:started_ms]), pid: row[:pid], index: index, phase: row[:generation],
        booted: booted?(row), last_checkin: time(row[:last_turn_ms]), last_status: status(row) }
    end

    def booted?(row)
      BOOTED.include?(state(row))
    end

    def state(row)
      row[:state].is_a?(Integer) ? Scoreboard::STATES.fetch(row[:state]) : row[:state]
    end

    # A time of the monotonic clock.
    def time(milliseconds)
      return if milliseconds.zero?

      ago = (Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond) - milliseconds) / 1000.0
      utc(Time.now - ago)
    end

    def utc(time)
      time.utc.strftime("%FT%TZ")
    end

    def versions
      { puma: defined?(::Puma::Const::VERSION) ? ::Puma::Const::VERSION : nil, rondo: VERSION,
        ruby: { engine: RUBY_ENGINE, version: RUBY_VERSION, patchlevel: RUBY_PATCHLEVEL } }.compact
    end
  end
end
