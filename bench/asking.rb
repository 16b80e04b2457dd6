# frozen_string_literal: true

# The parts of neverblock.rb in which one process asks: many requests at once, and requests beside a thread that
# computes. Each run is a process of its own (neverblock_client.rb), in this Ruby or in that of debian13.rb.
# SPDX-License-Identifier: MIT

require_relative "bars"
require_relative "fiber_servers"

module Bench
  # A backend as a process, on the client's CPU.
  class SlowBackend
    attr_reader :port

    # @param delay_ms [Integer]
    # @yieldparam port [Integer] until the block ends
    def self.run(delay_ms)
      backend = new(delay_ms)
      yield backend.port
    ensure
      backend&.stop
    end

    def initialize(delay_ms)
      said, says = IO.pipe
      @pid = spawn("taskset", "-c", CLIENT_CPU.to_s, Programs.path("slow_backend"), "0", delay_ms.to_s,
                   in: File::NULL, out: File::NULL, err: says)
      says.close
      @port = said.gets.to_s[/:(\d+)$/, 1]&.to_i || raise(Silent, "the backend did not start")
    ensure
      said&.close
    end

    # @return [void]
    def stop
      Process.kill(:KILL, @pid)
      Process.wait(@pid)
    end
  end

  # A way of neverblock_client.rb, on one of the two Rubies.
  NeverblockWay = Struct.new(:name, :title, :command, :environment, keyword_init: true) do
    # @return [Hash{Symbol => Float}, nil] what a run of it said; nil: it failed
    def run(port, *words)
      script = File.join(__dir__, "neverblock_client.rb")
      way, inside = name.split("-")
      script = Debian13.path(script) if inside
      said = IO.popen([environment, "timeout", "60", "taskset", "-c", SERVER_CPU.to_s,
                       *command.call(script, way, port.to_s, *words.map(&:to_s))], &:read)
      said.empty? ? warn("bench: #{name} #{words.join(" ")} failed") : JSON.parse(said, symbolize_names: true)
    end
  end

  # All ways.
  module NeverblockWays
    BARE = { "RUBYOPT" => nil, "RUBYLIB" => nil }.freeze # Rake's would load Bundler

    module_function

    # @return [Hash{String => NeverblockWay}] those that are there
    def all
      @all ||= [*here, *(inside if Debian13.version("async"))].to_h { |way| [way.name, way] }
    end

    def here
      version = RUBY_VERSION[/\d+\.\d+/]
      { "threads" => "a thread each", "pool" => "50 threads", "fibers" => "Rondo.fibers" }.map do |name, title|
        NeverblockWay.new(name: name, title: "#{title}, Ruby #{version}", environment: BARE,
                          command: ->(*words) { [Gem.ruby, "-I", File.join(ROOT, "lib"), *words] })
      end
    end

    def inside
      titles = { "threads" => "a thread each", "async" => "Async #{Debian13.version("async")}",
                 "fibers" => "Rondo.fibers" }
      titles.map do |name, title|
        NeverblockWay.new(name: "#{name}-3.3", title: "#{title}, Ruby 3.3", environment: Debian13.environment,
                          command: ->(*words) { Debian13.ruby(*words) })
      end
    end
    private_class_method :here, :inside
  end

  # What the parts share: rounds, goals, tables.
  class NeverblockPart
    # @param options [Hash{Symbol => Object}] rounds, within, and those of the part
    def initialize(options)
      @options = options
      @ways = NeverblockWays.all.values.select { |way| options[:ways].nil? || options[:ways].include?(way.name) }
    end

    private

    # @yieldparam ways [Array<NeverblockWay>] in the order of this round
    # @return [Array] what the blocks returned
    def rounds
      over = now + @options[:within]
      Array.new(@options[:rounds]) do |round|
        break @done if round.positive? && now > over

        (@done ||= []) << yield(@ways.rotate(round))
        @done.last
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # @return [Array<Float, nil>] for each round, one over the other
    def quotients(mine, others)
      mine.zip(others).map { |own, other| own && other && (own / other) }
    end

    def median(values)
      Statistics.median(values)
    end

    def number(value, digits = 0)
      return "-" if value.nil?

      whole, rest = format("%.#{digits}f", value).split(".")
      [whole.reverse.scan(/\d{1,3}-?/).join(",").reverse, *rest].join(".")
    end

    # @param ratios [Array<Float, nil>] one for each round
    # @return [String] the row of a goal
    def verdict(goal, ratios)
      ratios = ratios.compact
      found = median(ratios)
      cells = [goal.text, "#{goal.sign} #{goal.must}", "#{goal.sign} #{goal.stretch}"]
      cells += if found
                 [number(found, 3), ratios.minmax.map { |ratio| number(ratio, 3) }.join(" to "), goal.verdict(found)]
               else
                 ["-", "-", "not measured"]
               end
      row(cells)
    end

    def goals(rows)
      head = %w[measure must stretch Rondo]
      table([*head, "rounds, least to most", "verdict"], rows)
    end

    def table(heads, rows)
      [row(heads), "|#{"---|" * heads.size}", *rows].join("\n")
    end

    def row(cells)
      "| #{cells.join(" | ")} |"
    end
  end

  # A thousand requests at once, with several delays.
  class NeverblockClient < NeverblockPart
    # The pool is so slow that it gets no more than it can do in eight turns.
    POOL_TURNS = 8

    # @return [String] tables
    def call
      @delays = @options[:delays]
      @found = rounds { |ways| one_round(ways) }
      ["## As a client: #{@options[:requests]} requests with Net::HTTP, all at once\n",
       "#{@found.size} rounds; medians. A new process each time, on one CPU; its first request does not count.\n",
       goals(verdicts), "", *@delays.map { |delay| section(delay) }].join("\n")
    end

    # @return [String] SVG
    def picture
      rates = @ways.to_h { |way| [way.title, @delays.map { |delay| median(figures(delay, way.name, :rate)) }] }
      Bars.new("Requests per second: #{@options[:requests]} Net::HTTP requests at once",
               groups: @delays.map { |delay| "#{delay} ms" }, series: rates, drawn_by: "bench/neverblock.rb").to_s
    end

    private

    def one_round(ways)
      @delays.to_h do |delay|
        [delay, SlowBackend.run(delay) do |port|
          ways.to_h { |way| [way.name, way.run(port, "once", count(way, delay))] }
        end]
      end
    end

    def count(way, delay)
      return @options[:requests] unless way.name == "pool" && delay >= 100

      [@options[:requests], POOL_TURNS * 50].min
    end

    def figures(delay, name, metric)
      @found.map { |round| round.dig(delay, name, metric) }
    end

    def ratios(delay, name, other, metric)
      quotients(figures(delay, name, metric), figures(delay, other, metric))
    end

    def section(delay)
      rows = @ways.map do |way|
        rates = figures(delay, way.name, :rate).compact
        row([way.title, number(median(rates)), rates.minmax.map { |rate| number(rate) }.join(" to "),
             number(median(figures(delay, way.name, :cpu_us))),
             number(median(figures(delay, way.name, :most_kb))&./(1024.0), 1),
             *over(delay, way.name).map { |ratio| number(ratio, 2) }])
      end
      "### A backend that takes #{delay} ms\n\n" +
        table(["way", "requests/s", "least to most", "CPU µs/request", "most memory, MB",
               "requests/s over threads", "CPU over threads"], rows) + "\n"
    end

    # Over the threads of the same Ruby.
    def over(delay, name)
      threads = ["threads", *name[/-.*/]].join
      %i[rate cpu_us].map { |metric| median(ratios(delay, name, threads, metric)) }
    end

    def verdicts
      quick, slow = @delays.partition { |delay| delay <= 100 }
      [*quick.flat_map { |delay| quick_verdicts(delay) }, *slow.flat_map { |delay| slow_verdicts(delay) }]
    end

    def quick_verdicts(delay)
      here = RUBY_VERSION[/\d+\.\d+/]
      quicker = { must: 1.2, stretch: 1.6, at_least: true }
      [verdict(Goal.new(text: "#{delay} ms: requests/s over threads, Ruby #{here}", **quicker),
               ratios(delay, "fibers", "threads", :rate)),
       verdict(Goal.new(text: "#{delay} ms: requests/s over Async, Ruby 3.3", **quicker),
               ratios(delay, "fibers-3.3", "async-3.3", :rate)),
       verdict(Goal.new(text: "#{delay} ms: CPU over threads, Ruby #{here}", must: 0.55, stretch: 0.45),
               ratios(delay, "fibers", "threads", :cpu_us))]
    end

    # Nothing can be quicker than the backend's time and its own work.
    def slow_verdicts(delay)
      %w[fibers fibers-3.3].select { |name| NeverblockWays.all.key?(name) }.map do |name|
        text = "#{delay} ms: of the requests/s that the delay and its own CPU allow, #{NeverblockWays.all[name].title}"
        bounds = figures(delay, name, :cpu_seconds).map do |used|
          used && (@options[:requests] / ((delay / 1000.0) + used))
        end
        verdict(Goal.new(text: text, must: 0.85, stretch: 0.9, at_least: true),
                quotients(figures(delay, name, :rate), bounds))
      end
    end
  end

  # Requests beside a thread that computes.
  class NeverblockBeside < NeverblockPart
    AT_ONCE = 100
    DELAY = 50
    KINDS = %w[alone beside].freeze

    def initialize(options)
      super
      @ways = @ways.reject { |way| %w[pool threads-3.3].include?(way.name) }
    end

    # @return [String] tables
    def call
      @found = rounds { |ways| ways.to_h { |way| [way.name, one(way)] } }
      rows = @ways.map do |way|
        row([way.title, *KINDS.map { |kind| number(rate(way, kind), 1) }, number(median(kept(way.name)), 4)])
      end
      goal = Goal.new(text: "share of its requests/s that Rondo.fibers keeps, over that of Async, Ruby 3.3", must: 2,
                      stretch: 5, at_least: true)
      ratios = quotients(kept("fibers-3.3"), kept("async-3.3"))
      ["## Beside a thread that computes: #{AT_ONCE} requests at any time, a backend of #{DELAY} ms\n",
       "#{@found.size} rounds of #{@options[:seconds]} s; medians.\n", goals([verdict(goal, ratios)]), "",
       table(["way", "requests/s alone", "requests/s beside the thread", "share kept"], rows), ""].join("\n")
    end

    private

    def one(way)
      SlowBackend.run(DELAY) do |port|
        KINDS.to_h { |kind| [kind, way.run(port, kind, AT_ONCE, @options[:seconds])&.fetch(:rate)] }
      end
    end

    def rate(way, kind)
      median(@found.map { |round| round.dig(way.name, kind) })
    end

    # Who got nothing at all counts as if it had got one answer.
    def kept(name)
      @found.map do |round|
        alone, beside = round[name]&.values_at(*KINDS)
        alone && beside && ([beside, 1 / @options[:seconds]].max / alone)
      end
    end
  end
end
