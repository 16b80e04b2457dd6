# frozen_string_literal: true

# NeverBlock's table: what becomes of many requests that wait for a backend (slow_backend.c) which takes its time.
#
#   ruby bench/neverblock.rb [options] [client|beside|server|spinning]...   all if none is named
#
# - client: 1,000 Net::HTTP requests at once, from one process (neverblock_client.rb): by threads, by a pool of 50
#   threads, by Async and by Rondo.fibers, with backends that take 0, 10, 50, 100 and 500 ms.
# - beside: 100 such requests at any time, with a backend of 50 ms, alone and beside a thread that computes.
# - server: 1,000 connections to an application that asks the backend for each request: Puma, Falcon, Node, and Rondo
#   with threads and with fibers.
# - spinning: the same with 100 connections and a backend of 50 ms, alone and beside a thread of the application that
#   computes: Rondo and Falcon on the same Ruby.
#
# Async and Falcon run in the Debian 13 of debian13.rb, where it is. Each part has a time after which no further round
# begins; all of them take less than eight minutes.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "asking"

module Bench
  # An application that asks the backend for each request.
  class NeverblockServer
    WAVES = 5 # answers for each connection that count, where the server can; the first one does not

    def initialize(options)
      @options = options
    end

    # @return [String] the report
    def call
      names = @options[:servers] || %w[fibers threads puma5 puma50 falcon node]
      report(@options[:server_delays].map do |delay|
        measure(scenario(delay), delay, names, @options[:server_seconds])
      end)
    end

    private

    def measure(scenario, delay, names, seconds)
      SlowBackend.run(delay) do |port|
        servers = FiberServers.chosen(names, environment: { "BACKEND" => port.to_s }, fibers: @options[:connections])
        Alone.new(scenario, servers).run(rounds: @options[:rounds], seconds: seconds)
      end
    end

    def report(measurements, title = "As a server")
      text = Report.new(measurements, seconds: @options[:server_seconds]).markdown
      "## #{title}\n\n#{text[/^Versions: .*/]}\n\n#{text[/^## .*/m].gsub(/^## /, "### ")}"
    end

    # Rounds end with the last answer of so many for each connection, or when time is over: then what is still to come
    # is left.
    def scenario(delay)
      connections, within = @options.values_at(:connections, :within)
      Scenario.new("backend#{delay}").tap do |scenario|
        scenario.instance_eval do
          describe "#{connections} connections; each request asks a backend that takes #{delay} ms"
          app "backend"
          kind :watched
          threads 50
          within within
          over_connections connections
          ideal connections / (delay / 1000.0)
          client "--skip", connections.to_s, "-n", (connections * WAVES).to_s, "--leave"
          show :of_ideal, :rps, :cpu_us, :p50_us, :p99_us, :peak_mb, :busy
          next if delay < 500 # there the CPU is the bound

          at_least 0.90, 0.95, :of_ideal, "#{connections} connections, backend of #{delay} ms: of the bound"
        end
      end
    end
  end

  # The same beside a thread that computes.
  class NeverblockSpinning < NeverblockServer
    DELAY = 50

    # @return [String] the report
    def call
      names = @options[:servers] || %w[fibers33 falcon]
      report([measure(scenario(DELAY), DELAY, names, @options[:seconds])], "As a server, beside a thread that computes")
    end

    private

    def scenario(delay)
      within = @options[:within]
      connections = [@options[:connections], 100].min
      Scenario.new("spinning").tap do |scenario|
        scenario.instance_eval do
          describe "#{connections} connections, a backend of #{delay} ms; alone, and beside a thread of the application"
          app "backend"
          kind :spinning
          threads 3
          within within
          over_connections connections
          show :kept_beside, :rps, :beside_rps, :p99_us
          at_least 2, 5, :kept_beside, "beside a thread that computes: share kept over Falcon's", over: "falcon"
        end
      end
    end
  end

  # The command line.
  class Neverblock
    # Each with the seconds after which no further round of it begins.
    PARTS = { "client" => [NeverblockClient, 120], "beside" => [NeverblockBeside, 40],
              "server" => [NeverblockServer, 80], "spinning" => [NeverblockSpinning, 40] }.freeze

    def initialize(arguments)
      @options = { requests: 1000, rounds: 3, delays: [0, 10, 50, 100, 500], seconds: 2.5, connections: 1000,
                   server_delays: [500, 50], server_seconds: 4.0 }
      @parts = parser.parse(arguments)
      @parts = PARTS.keys if @parts.empty?
      abort "bench: no such part: #{(@parts - PARTS.keys).join(", ")}" if (@parts - PARTS.keys).any?
    end

    # @return [void]
    def call
      FiberServers.prepare(@options[:connections])
      texts = @parts.map { |name| part(name) }
      title = "# NeverBlock's table, #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC"
      text = [title, FiberServers.versions, texts.join("\n")].join("\n\n")
      @options[:out] ? File.write(@options[:out], text) : puts(text)
    end

    private

    def part(name)
      type, within = PARTS.fetch(name)
      part = type.new(@options.merge(within: within))
      text = part.call
      return text unless @options[:out] && part.respond_to?(:picture)

      picture = @options[:out].sub(/(\.md)?\z/, ".svg")
      File.write(picture, part.picture)
      "#{text}\n![requests per second](#{File.basename(picture)})\n"
    end

    NUMBERS = { "--rounds N" => [Integer, "of each part (3)"],
                "--requests N" => [Integer, "at once, as a client (1000)"],
                "--connections N" => [Integer, "to the servers (1000)"],
                "--seconds S" => [Float, "of a run beside the thread (2.5)"],
                "--server-seconds S" => [Float, "of a run of a server, at most (4)"] }.freeze
    LISTS = { "--delays A,B" => "of the client's backends, ms", "--server-delays A,B" => "of the servers' backends, ms",
              "--ways A,B" => "of the client, only these", "--servers A,B" => "only these" }.freeze

    def parser
      OptionParser.new do |options|
        options.banner = "usage: ruby bench/neverblock.rb [options] [#{PARTS.keys.join("|")}]..."
        NUMBERS.each { |words, (type, text)| options.on(words, type, text) { |value| @options[key(words)] = value } }
        LISTS.each { |words, text| options.on(words, Array, text) { |list| @options[key(words)] = read(words, list) } }
        options.on("--out FILE", "write the Markdown there, and the picture beside it") { |file| @options[:out] = file }
      end
    end

    def key(words)
      words[/--(\S+)/, 1].tr("-", "_").to_sym
    end

    def read(words, list)
      words.include?("delays") ? list.map { |text| Integer(text) } : list
    end
  end
end

Bench::Neverblock.new(ARGV).call if $PROGRAM_NAME == __FILE__
