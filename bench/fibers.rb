# frozen_string_literal: true

# What fibers in the server give and cost: `ruby bench/fibers.rb [options] [wait|hello|asleep|computing]...`, all four
# if none is named. Beside the same server without fibers, Puma, Falcon (in the Debian 13 of debian13.rb, where it is)
# and Node. Takes less than eight minutes.
#
# - wait: a page that sleeps 5 ms, 64 connections.
# - hello: a page that does not wait; CPU time with fibers over that with threads alone. `ruby bench/instructions.rb
#   --fibers 1000` counts instructions.
# - asleep: 10,000 requests that sleep; memory for each, and plain requests beside them.
# - computing: one request computes for 2 s, three threads; the longest wait of plain requests meanwhile.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "fiber_servers"

module Bench
  # The scenarios and their servers.
  module FiberScenarios
    WAIT_MS = 5

    module_function

    # @return [Hash{String => Proc}] each makes a scenario of a number of connections
    def all
      { "wait" => method(:wait), "hello" => method(:hello), "asleep" => method(:asleep),
        "computing" => method(:computing) }
    end

    # @return [Array<String>] of {FiberServers::NAMES}
    def servers(name)
      { "wait" => %w[fibers falcon node puma], "hello" => %w[fibers threads],
        "asleep" => %w[fibers falcon node], "computing" => %w[fibers threads puma falcon] }.fetch(name)
    end

    def wait(connections)
      define("wait", "a page that sleeps #{WAIT_MS} ms, #{connections} connections", connections) do
        kind :watched
        ideal connections * 1000.0 / WAIT_MS
        send_requests :wait
        show :rps, :of_ideal, :cpu_us, :p99_us, :peak_mb
        at_least 0.961, 0.977, :of_ideal, "sleep #{WAIT_MS} ms, #{connections} connections: of the bound " \
                                          "(12,300 and 12,500 of 12,800/s)"
        at_most 24, 18, :cpu_us, "sleep #{WAIT_MS} ms, #{connections} connections: CPU µs"
      end
    end

    def hello(connections)
      define("hello", "a plain page, #{connections} connections", connections) do
        kind :watched
        show :cpu_us, :rps, :p99_us, :peak_mb
        at_most 1.15, 1.06, :cpu_us, "hello with fibers over hello with threads, CPU", over: "threads"
      end
    end

    def asleep(connections)
      define("asleep", "#{connections} requests asleep in one worker, and 8 connections with plain requests",
             connections) do
        kind :asleep
        show :bytes_asleep, :held, :p99_ms, :rps
        at_most 24_000, 16_000, :bytes_asleep, "#{connections} requests asleep: bytes for each"
        at_most 5, 2, :p99_ms, "#{connections} requests asleep: p99 of plain requests beside them, ms"
      end
    end

    def computing(connections)
      define("computing", "one request computes for 2 s, 3 threads; #{connections} connections with plain requests",
             connections) do
        kind :computing
        threads 3
        show :longest_ms, :p99_us, :p50_us, :answers, :computed_s, :alone_ms
        at_most 30, 10, :longest_ms, "one call computes for 2 s, -t 3: longest wait of other requests, ms"
      end
    end

    def define(name, title, connections, &block)
      Scenario.new(name).tap do |scenario|
        scenario.app("fibers")
        scenario.describe("#{name}: #{title}")
        scenario.over_connections(connections)
        scenario.instance_eval(&block)
      end
    end
    private_class_method :wait, :hello, :asleep, :computing, :define
  end

  # The command line.
  class FibersRun
    WITHIN = 90 # seconds after which no further round of a scenario begins

    def initialize(arguments)
      @rounds, @seconds, @connections, @asleep, @fibers, @computing = 5, 2.0, 64, 10_000, 1000, 2.0
      @names = parser.parse(arguments)
      @names = FiberScenarios.all.keys if @names.empty?
    end

    # @return [void]
    def call
      FiberServers.prepare(@asleep)
      measurements = @names.map { |name| measure(name) }
      text = Report.new(measurements, seconds: @seconds).markdown.sub("# Results", "# Fibers in the server: results")
      @out ? File.write(@out, text) : puts(text)
    end

    private

    def measure(name)
      scenario = FiberScenarios.all.fetch(name).call(connections(name)).tap { |made| made.within(WITHIN) }
      names = FiberScenarios.servers(name)
      names &= @servers if @servers
      servers = FiberServers.chosen(names, environment: {}, fibers: name == "asleep" ? @asleep + 100 : @fibers)
      Alone.new(scenario, servers, computing: @computing).run(rounds: rounds(name), seconds: @seconds)
    end

    def connections(name)
      { "asleep" => @asleep, "computing" => 8 }.fetch(name, @connections)
    end

    # Those take long, and differ little.
    def rounds(name)
      %w[asleep computing].include?(name) ? [@rounds, 3].min : @rounds
    end

    def parser
      OptionParser.new do |options|
        options.banner = "usage: ruby bench/fibers.rb [options] [#{FiberScenarios.all.keys.join("|")}]..."
        options.on("--rounds N", Integer, "alternating rounds (5; at most 3 of asleep and computing)") do |count|
          @rounds = count
        end
        options.on("--seconds S", Float, "length of one measurement (2)") { |seconds| @seconds = seconds }
        options.on("--connections N", Integer, "of wait and hello (64)") { |count| @connections = count }
        options.on("--asleep N", Integer, "requests asleep (10000)") { |count| @asleep = count }
        options.on("--computing S", Float, "seconds of the request that computes (2)") do |seconds|
          @computing = seconds
        end
        options.on("--fibers N", Integer, "of Rondo (1000; as many as needed in asleep)") { |count| @fibers = count }
        options.on("--servers A,B", Array, "only these: #{FiberServers::NAMES.join(" ")}") { |names| @servers = names }
        options.on("--out FILE", "write the Markdown there") { |file| @out = file }
      end
    end
  end
end

Bench::FibersRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
