# frozen_string_literal: true

# All that `rondo bench` has measured, as plain Hashes: the JSON file has it, and the HTML file is made of
# it, so that both say the same.
# SPDX-License-Identifier: MIT

require "etc"
require "time"
require "rondo/command/bench/advice"
require "rondo/command/bench/figures"

module Rondo
  class Bench
    # Rounds, medians of them, ratios to Rondo, advice.
    class Document
      # Of each phase.
      MEDIANS = { alone: %i[rps cpu_us busy mean_us p50_us p99_us longest_us elsewhere_busy],
                  busy: %i[rps cpu_us busy mean_us p50_us p99_us longest_us client_busy elsewhere_busy
                           queue_mean_us queue_p50_us queue_p99_us inside_mean_us inside_p50_us inside_p99_us],
                  mixed: %i[rps cpu_us fairness p50_us p99_us longest_us],
                  memory: %i[rss pss] }.freeze
      RATIOS = { alone: %i[mean_us cpu_us], busy: %i[rps cpu_us p50_us p99_us], mixed: %i[fairness p99_us],
                 memory: %i[rss pss] }.freeze
      # A server that is not measured shall be idle: less than this part of a CPU.
      IDLE = 0.05
      # CPUs that other programs use, from which on it is told.
      NOISE = 0.15

      # @param contenders [Array<Contender, Running>]
      # @param options [Options]
      def initialize(contenders, options)
        @contenders = contenders
        @options = options
      end

      # @return [Hash{Symbol => Object}]
      def to_h
        servers = @contenders.map { |contender| server(contender) }
        { rondo_bench: VERSION, taken_at: Time.now.utc.iso8601, machine: machine, options: @options.to_h,
          servers: servers, advice: Advice.new(servers.first, machine[:cpus], @options).to_a }
      end

      private

      def machine
        @machine ||= { cpus: Etc.nprocessors, processor: processor,
                       system: Etc.uname.values_at(:sysname, :release).join(" "), ruby: RUBY_DESCRIPTION }
      end

      def processor
        File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)$/, 1] || Etc.uname[:machine]
      rescue SystemCallError
        Etc.uname[:machine]
      end

      def server(contender)
        rounds = contender.rounds
        { name: contender.name, title: contender.title, version: contender.version,
          first_answer: contender.answer.to_h.slice(:status, :bytes), notes: notes(contender),
          medians: each_figure(MEDIANS) { |phase, name| Figures.median(Figures.of(rounds, phase, name)) },
          spans: each_figure(RATIOS) { |phase, name| Figures.of(rounds, phase, name).minmax },
          ratios: each_figure(RATIOS) { |phase, name| Figures.ratio(rounds, @contenders.first.rounds, phase, name) },
          rounds: rounds }
      end

      def each_figure(table)
        table.to_h { |phase, names| [phase, names.to_h { |name| [name, yield(phase, name)] }.compact] }
      end

      def notes(contender)
        contender.notes + failures(contender) + neighbours(contender) + elsewhere(contender)
      end

      def elsewhere(contender)
        used = Figures.median(Figures.of(contender.rounds, :busy, :elsewhere_busy))
        return [] if used.nil? || used < NOISE

        ["while it was measured, other programs of this machine used #{Figures.number(used)} CPUs (median): " \
         "requests/s and waits are worse than they would be alone"]
      end

      # What is counted of connections and requests that had no answer.
      LOST = { broken: "connections ended before an answer", refused: "connections were refused",
               unanswered: "requests had no answer after #{Rounds::PATIENCE} s",
               unclosed: "connections were not closed in spite of Connection: close" }.freeze
      private_constant :LOST

      def failures(contender)
        measured = contender.rounds.flat_map { |round| round.values_at(*Rounds::PHASES) }
        unlike(measured) + LOST.filter_map do |name, text|
          count = measured.sum { |each| each[name] }
          "#{count} #{text}" if count.positive?
        end
      end

      # Answers that are counted, but were not 2xx.
      def unlike(measured)
        statuses = measured.map { |each| each[:statuses] }.reduce { |a, b| a.merge(b) { |_, x, y| x + y } }
        others = statuses.except("2xx")
        return [] if others.empty?

        ["#{others.values.sum} of #{statuses.values.sum} answers were not 2xx (" \
         "#{others.map { |group, count| "#{group}: #{count}" }.join(", ")})"]
      end

      def neighbours(contender)
        most = contender.rounds.flat_map { |round| round.values_at(*Rounds::PHASES) }
                        .map { |each| each[:neighbours_busy] }.max
        return [] if most < IDLE

        ["while it was measured, the other servers used up to #{Figures.number(most)} of a CPU"]
      end
    end
  end
end
