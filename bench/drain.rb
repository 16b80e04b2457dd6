# frozen_string_literal: true

# Measures what a server that stops means for the one beside it: `ruby bench/drain.rb [--clients 10000] [--rounds 3]`.
# drain_client.c has that many event streams, or WebSockets, at one server; all come back to the other one. How many end
# and come back in a tenth of a second at most, and how long a page of the other server takes meanwhile; without
# drain_spread and with it. Needs two descriptors for each client.
# SPDX-License-Identifier: MIT

require "json"
require "optparse"
require "tmpdir"
require_relative "programs"

module Bench
  # Two servers, of which the first one stops.
  class Drain
    APP = <<~RUBY
      News = Module.new { def self.on_open(client) = client.subscribe("news") }
      run lambda { |env|
        env["rack.upgrade"] = News if env["rack.upgrade?"]
        [200, { "content-type" => "text/plain" }, ["hello"]]
      }
    RUBY
    PORTS = [9481, 9482].freeze
    QUIET = 2 # seconds of pages before the stop

    # @param spread [Numeric] seconds
    def initialize(clients, kind, spread)
      @clients = clients
      @kind = kind
      @spread = spread
    end

    # @return [Hash] what drain_client says
    def run
      Dir.mktmpdir do |folder|
        File.write(File.join(folder, "config.ru"), APP)
        servers = PORTS.map { |port| start(folder, port) }
        PORTS.each { |port| await(port) }
        measure(servers.first)
      ensure
        servers&.each { |pid| stop(pid) }
      end
    end

    private

    def start(folder, port)
      File.write(File.join(folder, "#{port}.rb"), "port #{port}\nbacklog 4096\ndrain_spread #{@spread}\n")
      command = [File.join(ROOT, "bin", "rondo"), "-q", "-e", "production", "-C", "#{port}.rb"]
      Process.spawn(*command, chdir: folder, out: File.join(folder, "#{port}.log"), err: %i[child out])
    end

    def await(port)
      60.times do
        return TCPSocket.new("127.0.0.1", port).close
      rescue Errno::ECONNREFUSED
        sleep 0.25
      end
      raise "no server at #{port}"
    end

    def measure(leaving)
      IO.popen([Programs.path("drain_client"), *PORTS.map(&:to_s), @clients.to_s, @kind], "r+") do |client|
        client.gets == "open\n" or raise "the client does not start"
        sleep QUIET
        client.puts "stop"
        client.flush
        Process.kill("TERM", leaving)
        JSON.parse(client.read)
      end
    end

    def stop(pid)
      2.times { Process.kill("TERM", pid) }
      Process.wait(pid)
    rescue Errno::ESRCH, Errno::ECHILD
      nil
    end
  end

  # Rows of a table: the median of the rounds for each number.
  class DrainTable
    COLUMNS = { "ends in 0.1 s, at most" => ->(found) { found["ends"].max },
                "last end, s" => ->(found) { found["ends"].size / 10.0 },
                "returns in 0.1 s, at most" => ->(found) { found["returns"].max },
                "last return, s" => ->(found) { found["returns"].size / 10.0 },
                "page before: p99, ms" => ->(found) { found["before"]["p99"] / 1000.0 },
                "page after: p50, ms" => ->(found) { found["after"]["p50"] / 1000.0 },
                "p99, ms" => ->(found) { found["after"]["p99"] / 1000.0 },
                "longest, ms" => ->(found) { found["after"]["max"] / 1000.0 } }.freeze

    def initialize
      puts "| clients | drain_spread | #{COLUMNS.keys.join(" | ")} |", "|#{" --- |" * (COLUMNS.size + 2)}"
    end

    # @param name [String]
    # @param rounds [Array<Hash>]
    def add(name, spread, rounds)
      cells = COLUMNS.values.map { |column| format("%g", rounds.map(&column).sort[rounds.size / 2]) }
      puts "| #{name} | #{spread} s | #{cells.join(" | ")} |"
    end
  end
end

if $PROGRAM_NAME == __FILE__
  options = { clients: 10_000, rounds: 3, spreads: [0, 5, 20] }
  OptionParser.new do |parser|
    parser.on("--clients N", Integer) { |number| options[:clients] = number }
    parser.on("--rounds N", Integer) { |number| options[:rounds] = number }
    parser.on("--spreads LIST", Array) { |list| options[:spreads] = list.map { |each| Float(each) } }
    parser.on("--json FILE") { |path| options[:json] = path }
  end.parse!
  Bench::Programs.compile_rondo
  Bench::Programs.build
  table = Bench::DrainTable.new
  %w[stream websocket].product(options[:spreads]).each do |kind, spread|
    rounds = Array.new(options[:rounds]) { Bench::Drain.new(options[:clients], kind, spread).run }
    if options[:json]
      File.write(options[:json], "#{JSON.generate(kind: kind, spread: spread, rounds: rounds)}\n",
                 mode: "a")
    end
    table.add("#{options[:clients]} #{kind}s", format("%g", spread), rounds)
  end
end
