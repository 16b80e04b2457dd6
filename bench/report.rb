# frozen_string_literal: true

# Turns measurements into Markdown: a table per scenario with medians and the ratios to each peer,
# and the table of goals. Ratios are taken within a round and only then the median of them, because
# a shared machine's speed drifts more between rounds than most servers differ. Used by run.rb.
# SPDX-License-Identifier: MIT

require "etc"
require_relative "scenario"
require_relative "servers"

module Bench
  # @return [String] what the figures are of
  def self.machine
    model = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)$/, 1]
    "#{model}, #{Etc.nprocessors} CPUs; Linux #{Etc.uname[:release][/\A\d+\.\d+/]}; " \
      "#{RUBY_DESCRIPTION[/\Aruby \S+/]}"
  end

  # Medians and ratios of rounds.
  module Statistics
    module_function

    # @return [Float, nil]
    def median(values)
      sorted = values.compact.reject { |value| value.respond_to?(:nan?) && value.nan? }.sort
      return if sorted.empty?

      middle = sorted.size / 2
      sorted.size.odd? ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2.0
    end

    NEVER = %i[wrong failed].freeze

    # @return [Float, nil] of the rounds: the median, or of what must never happen the most
    def middle(values, metric)
      NEVER.include?(metric) ? values.compact.max : median(values)
    end

    # @return [Float, nil] one metric over the rounds of a contestant
    def figure(contestant, metric)
      middle(contestant.rounds.compact.map { |round| round[metric] }, metric)
    end

    # @return [Array<Float>] one ratio for each round all have
    # @yieldparam theirs [Array<Float>] of several others
    # @yieldreturn [Float] the one that counts
    def ratios(contestant, others, metric)
      rounds = contestant.rounds.zip(*others.map(&:rounds))
      figures = rounds.map { |round| round.map { |each| each && each[metric] } }.select(&:all?)
      figures.map { |mine, *theirs| mine / (theirs.one? ? theirs.first : yield(theirs)).to_f }.select(&:finite?)
    end
  end

  # The Markdown of a run.
  class Report
    HEADINGS = {
      cpu_us: ["server CPU µs/request", 2], rps: ["requests/s", 0], p50_us: ["median wait µs", 0],
      p99_us: ["p99 µs", 0], longest_us: ["longest wait µs", 0], body_bytes: ["answer bytes", 0],
      unclosed: ["not closed", 0], kept: ["share of hello", 3], of_ideal: ["share of the ideal", 3],
      start_s: ["start s", 2],
      cpu_us_per_mb: ["CPU µs/MB", 1], mb_per_cpu_s: ["MB/CPU second", 0], resumed: ["resumed", 0],
      quiet_p99_us: ["p99 µs, quiet", 0], added_ms: ["added ms", 2],
      mb_per_s: ["MB/s", 0], longest_over_median: ["longest/median", 2],
      bytes_per_connection: ["bytes/connection", 0], max_over_min: ["max/min", 4],
      spins_per_s: ["the thread's rounds/s", 0], objects: ["objects/request", 1], busy: ["server busy", 2],
      message_us: ["server CPU µs/message", 2], messages: ["messages/s", 0],
      delivery_us: ["server CPU µs/delivery", 2], deliveries: ["deliveries/s", 0],
      single_us: ["server CPU µs/delivery", 2], burst_us: ["bursts of 10: CPU µs/delivery", 2],
      first_us: ["first delivery µs", 0], last_us: ["last delivery µs", 0],
      burst_last_us: ["bursts: last delivery µs", 0], grown_mib: ["growth, MiB", 1],
      publish_us: ["CPU µs a publish", 1], over_none: ["over none", 2],
      bytes_per_further: ["bytes/connection, second half", 0], wrong: ["missing, doubled, lost", 0],
      answers: ["answers", 0], least_answers: ["fewest of a client", 0], most_answers: ["most of a client", 0],
      least_mb: ["least MB of a client", 1], most_mb: ["most MB of a client", 1],
      peak_mb: ["most memory, MB", 1], bytes_asleep: ["bytes/request asleep", 0], held: ["asleep", 0],
      beside_rps: ["requests/s beside the thread", 1], kept_beside: ["share kept", 4],
      p99_ms: ["p99 ms", 2], alone_ms: ["longest alone ms", 2], computed_s: ["computed for s", 2],
      longest_ms: ["slowest answer ms", 2], failed: ["failed", 0], errors: ["errors", 0],
      part: ["part of the ten", 3], beside_p99_us: ["p99 µs of the ten", 0], over_http1: ["over HTTP/1.1", 2],
      http1_mb_per_s: ["MB/s, HTTP/1.1", 0], over_quiet: ["p99 over quiet", 2], pings: ["PINGs", 0],
      ping_longest_ms: ["slowest PING ms", 2], worst_ms: ["slowest of both ms", 2], added_us: ["added CPU µs", 1],
      stranded: ["stranded requests", 0], stranded_conns: ["stranded connections", 0]
    }.freeze

    def initialize(measurements, seconds:)
      @measurements = measurements
      @seconds = seconds
    end

    # @return [String]
    def markdown
      [heading, goals, *@measurements.map { |measurement| scenario(measurement) }].join("\n")
    end

    private

    def heading
      <<~MARKDOWN
        # Results of #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC

        #{Bench.machine}. Server on CPU #{SERVER_CPU}, client on CPU #{CLIENT_CPU}; #{rounds} alternating rounds of #{@seconds} s after a warm-up; medians; ratios within rounds.

        Versions: #{versions}.
      MARKDOWN
    end

    def rounds
      @measurements.flat_map { |m| m.contestants.map { |each| each.rounds.size } }.minmax.uniq.join(" to ")
    end

    def versions
      servers = @measurements.flat_map { |m| m.contestants.map(&:server) }.uniq
      servers.map { |server| "#{server.title} #{server.version.call}" }.uniq.join(", ")
    end

    def goals
      rows = @measurements.flat_map do |measurement|
        measurement.scenario.goals.map { |goal| goal_row(measurement, goal) }
      end
      return "" if rows.empty?

      <<~MARKDOWN
        ## What Rondo must reach

        | measure | must | stretch | Rondo | rounds, least to most | verdict |
        |---|---|---|---|---|---|
        #{rows.join("\n")}
      MARKDOWN
    end

    def goal_row(measurement, goal)
      values = goal_values(measurement, goal)
      figure = Statistics.middle(values, goal.metric)
      cells = [goal.text, "#{goal.sign} #{goal.must}", "#{goal.sign} #{goal.stretch}"]
      cells += if find(measurement, goal.of)&.failed?
                 ["-", "-", "FAILED"]
               elsif figure
                 [number(figure, 3), values.minmax.map { |v| number(v, 3) }.join(" to "),
                  goal.verdict(figure)]
               else
                 ["-", "-", "not measured"]
               end
      row(cells)
    end

    def goal_values(measurement, goal)
      subject = find(measurement, goal.of)
      rivals = goal.rivals.map { |name| find(measurement, name) }
      return [] unless [subject, *rivals].all?
      return Statistics.ratios(subject, rivals, goal.metric) { |theirs| goal.best(theirs) } if rivals.any?

      subject.rounds.compact.filter_map { |round| round[goal.metric] }
    end

    def find(measurement, name)
      measurement.contestants.find { |contestant| contestant.server.name == name }
    end

    # Ratios are of the first metric shown: the one the scenario is about.
    def scenario(measurement)
      shown = measurement.scenario.columns
      base = %w[rondo floor].filter_map { |name| find(measurement, name) }
                            .select { |contestant| contestant.rounds.any? }
      titles = shown.map { |metric| HEADINGS.fetch(metric).first }
      titles += base.map { |contestant| "#{titles.first} over #{contestant.server.title}" }
      rows = measurement.contestants.map { |contestant| server_row(contestant, shown, base) }
      "## #{measurement.scenario.title}\n\n#{row(["server", *titles])}\n" \
        "|#{"---|" * (titles.size + 1)}\n#{rows.join("\n")}\n#{notes(measurement)}"
    end

    def server_row(contestant, shown, base)
      cells = shown.map do |metric|
        next "FAILED" if contestant.failed? && metric != :failed

        number(Statistics.figure(contestant, metric), HEADINGS.fetch(metric).last)
      end
      cells += base.map do |other|
        next "-" if contestant.failed?
        next "1" if other.equal?(contestant)

        number(Statistics.median(Statistics.ratios(contestant, [other], shown.first)), 2)
      end
      row([contestant.server.title, *cells])
    end

    def notes(measurement)
      lines = measurement.contestants.flat_map do |contestant|
        contestant.notes.map { |note| "- #{contestant.server.title}: #{note.gsub(/\s+/, " ")}" }
      end
      lines.empty? ? "" : "\n#{lines.join("\n")}\n"
    end

    def number(value, digits)
      return "-" if value.nil? || (value.is_a?(Float) && !value.finite?)
      return format("%.#{digits}f", value) if digits.positive?

      value.round.to_s.reverse.scan(/\d{1,3}-?/).join(",").reverse
    end

    def row(cells)
      "| #{cells.join(" | ")} |"
    end
  end
end
