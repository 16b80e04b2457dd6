# frozen_string_literal: true

# The benchmarks' command: `ruby bench/run.rb [options] [SCENARIO...]`. Chooses scenarios (files of bench/scenarios) and
# servers (servers.rb), measures them (measure.rb) and prints or writes the report (report.rb, and
# as HTML html_report.rb).
# SPDX-License-Identifier: MIT

require "optparse"
require "fileutils"
require_relative "html_report"
require_relative "measure"
require_relative "other_ruby"
require_relative "report"

Dir.glob(File.join(__dir__, "scenarios", "*.rb")).each { |file| require file }

module Bench
  # The command line.
  class Run
    def initialize(arguments)
      @seconds = 1.0
      @html = "build/bench.html"
      @names = nil
      @scenarios = parser.parse(arguments)
      @scenarios = Bench.scenarios.keys if @scenarios.empty?
    end

    # @return [Integer] exit status
    def call
      Programs.build
      Files.prepare
      Programs.compile_rondo if servers.any? { |server| server.name == "rondo" && server.installed? }
      abort "bench: no Rondo for Ruby #{@other.version}" unless @other.nil? || @other.prepare
      warn "bench: not installed: #{Peers.install.join(", ")}" if @install
      names = @scenarios.flat_map { |name| Bench.scenarios_named(name) }
      measurements = names.map { |name| measure(Bench.scenarios.fetch(name)) }
      text = Report.new(measurements, seconds: @seconds).markdown
      write(text, measurements)
      0
    rescue KeyError => e
      warn "bench: no such scenario: #{e.key}; there are #{Bench.scenarios.keys.join(", ")}"
      2
    end

    private

    def write(text, measurements)
      @out ? File.write(@out, text) : puts(text)
      File.write(@json, JSON.pretty_generate(raw(measurements))) if @json
      FileUtils.mkdir_p(File.dirname(@html))
      File.write(@html, HtmlReport.new(text).to_s)
      warn "bench: the report is #{@html}"
    end

    def parser
      OptionParser.new do |options|
        options.banner = "usage: ruby bench/run.rb [options] [#{Bench.scenarios.keys.join("|")}|push|files]..."
        options.on("--rounds N", Integer, "alternating rounds (5, or as the scenario says)") { |n| @rounds = n }
        options.on("--seconds S", Float, "length of one measurement (1)") { |s| @seconds = s }
        options.on("--servers A,B", Array, "only these: #{Servers.all.keys.join(" ")}") do |names|
          @names = names
        end
        options.on("--install", "install the peers first") { @install = true }
        options.on("--ruby RUBY", "also Rondo on it: X.Y of tools/in_ruby --list, or a program, with YJIT") do |ruby|
          @other = ruby.match?(/\A\d+\.\d+\z/) ? OtherRuby.new(ruby) : ChosenRuby.new(ruby)
        end
        options.on("--out FILE", "write the Markdown there") { |file| @out = file }
        options.on("--html FILE", "write the report with plots there (build/bench.html)") { |file| @html = file }
        options.on("--json FILE", "write every round there") { |file| @json = file }
      end
    end

    def known
      @known ||= [*Servers.all.values, @other&.server].compact.to_h { |server| [server.name, server] }
    end

    def servers
      @servers ||= (@names || known.keys).map do |name|
        known.fetch(name) { abort "bench: no such server: #{name}" }
      end
    end

    # A peer that is not installed is named, not dropped silently.
    def measure(scenario)
      ready, missing = servers.select { |server| server.takes_part?(scenario) }.partition(&:installed?)
      warn "bench: #{scenario.name}: not there: #{missing.map(&:name).join(", ")}" if missing.any?
      warn "bench: #{scenario.name}: #{ready.map(&:name).join(" ")}"
      Measurement.new(scenario, ready).run(rounds: @rounds || scenario.rounds, seconds: @seconds)
    end

    def raw(measurements)
      measurements.to_h do |measurement|
        [measurement.scenario.name, measurement.contestants.to_h do |contestant|
          [contestant.server.name, { version: contestant.server.version.call,
                                     notes: contestant.notes, rounds: contestant.rounds }]
        end]
      end
    end
  end
end

exit Bench::Run.new(ARGV).call if $PROGRAM_NAME == __FILE__
