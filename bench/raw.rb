# frozen_string_literal: true

# Measures raw connections: `ruby bench/raw.rb [--rounds N] [--seconds S] [--idle N] [SERVER...]`. CPU time of the
# server per echoed message, and memory per idle connection, beside an echo in C with epoll (raw_floor.c) and iodine
# 0.7.60. All servers of a round are measured one after the other, each round begins with another one, and the ratios
# are medians of those within a round.
# SPDX-License-Identifier: MIT

require "optparse"
require "socket"
require "tmpdir"
require_relative "dialogue"
require_relative "processes"

module Bench
  # The client of raw connections.
  class RawClient < Dialogue
    PROGRAM = "raw_client"
  end

  # A server of raw connections as a process.
  class RawServer
    ECHO = <<~RUBY
      class Echo
        def on_message(client, data) = client.write(data)
      end
    RUBY
    RONDO = <<~RUBY.freeze
      #{ECHO}
      require "rondo"
      server = Rondo::Server.new(->(_env) { [200, {}, []] }, min_threads: 1, max_threads: 1, max_connections: 50_000)
      server.listen_raw("tcp://127.0.0.1:\#{ARGV.first}") { Echo.new }
      server.run
    RUBY
    # Its handlers have no callbacks, so there is nothing of Ruby for a connection.
    BARE = RONDO.sub("{ Echo.new }", "{ true }")
    IODINE = <<~RUBY.freeze
      #{ECHO}
      require "iodine"
      Iodine.workers = Iodine.threads = 1
      Iodine.verbosity = 2
      Iodine.listen(port: ARGV.first, address: "127.0.0.1") { Echo.new }
      Iodine.start
    RUBY
    TITLES = { "floor" => "C floor", "rondo" => "Rondo", "bare" => "Rondo without callbacks",
               "iodine" => "iodine 0.7.60" }.freeze

    attr_reader :pid, :port

    # @param wrapper [Array<String>] a command to run it under, valgrind for one
    def initialize(name, wrapper: ["taskset", "-c", SERVER_CPU.to_s])
      @port = Addrinfo.tcp("127.0.0.1", 0).bind { |socket| socket.local_address.ip_port }
      environment = name == "iodine" ? Peers.environment : {}
      @pid = spawn(environment, *wrapper, *command(name), in: File::NULL, %i[out err] => File::NULL)
      until_it_accepts
    end

    # @return [void]
    def stop
      Process.kill("KILL", @pid)
      Process.wait(@pid)
    end

    private

    def command(name)
      case name
      when "floor" then [Programs.path("raw_floor"), @port.to_s]
      when "rondo" then [Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", RONDO, @port.to_s]
      when "bare" then [Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", BARE, @port.to_s]
      when "iodine" then [Gem.ruby, "-e", IODINE, @port.to_s]
      end
    end

    def until_it_accepts
      3600.times do # three minutes: valgrind is slow
        return TCPSocket.new("127.0.0.1", @port).close
      rescue Errno::ECONNREFUSED
        abort "bench: #{@pid} did not start" if Process.wait(@pid, Process::WNOHANG)
        sleep 0.05
      end
      abort "bench: #{@pid} does not listen"
    end
  end

  # All rounds, and their table.
  class RawRun
    CONNECTIONS = 64
    BYTES = 100

    def initialize(arguments)
      read_options(arguments)
      @names -= ["iodine"] unless Peers.version("iodine", "~> 0.7.0")
    end

    # @return [void]
    def call
      Process.setrlimit(:NOFILE, [2 * @idle, Process.getrlimit(:NOFILE).last].min) if @idle > 400
      Programs.build
      Programs.compile_rondo
      rounds = Array.new(@rounds) { |index| names_of(index).to_h { |name| [name, echo(name)] } }
      puts "| server | µs of CPU per message | over the floor | over iodine | bytes per idle connection |",
           "|---|---|---|---|---|"
      @names.each { |name| puts "| #{[RawServer::TITLES.fetch(name), *figures(rounds, name)].join(" | ")} |" }
    end

    private

    def read_options(arguments)
      @rounds, @seconds, @idle = 5, 2.0, 8000
      OptionParser.new do |options|
        options.on("--rounds N", Integer, "of echoes (5)") { |count| @rounds = count }
        options.on("--seconds S", Float, "of each (2)") { |seconds| @seconds = seconds }
        options.on("--idle N", Integer, "idle connections, for their memory (8000)") { |count| @idle = count }
      end.parse!(arguments)
      @names = arguments.empty? ? %w[floor rondo bare iodine] : arguments
    end

    # Handlers without callbacks drop what comes.
    def names_of(index)
      (@names - ["bare"]).rotate(index)
    end

    def figures(rounds, name)
      used = middle(rounds.map { |round| round[name] })
      [number(used), *%w[floor iodine].map { |other| number(ratio(rounds, name, other)) }, idle_bytes(name)]
    end

    def ratio(rounds, name, other)
      middle(rounds.map { |round| round[name] && round[other] && (round[name] / round[other]) })
    end

    def middle(values)
      values.compact.sort.then { |sorted| sorted[sorted.size / 2] }
    end

    def number(value)
      value ? format("%.2f", value) : "-"
    end

    def with(name)
      server = RawServer.new(name)
      RawClient.run(server.port) { |client| yield server, client }
    ensure
      server&.stop
    end

    # @return [Float] microseconds of CPU per message
    def echo(name)
      with(name) do |server, client|
        client.tell("open", CONNECTIONS)
        client.tell("echo", BYTES, 0.3)
        before = Processes.cpu_us(server.pid)
        messages = client.tell("echo", BYTES, @seconds)[:messages]
        (Processes.cpu_us(server.pid) - before) / messages
      end
    end

    # Between an eighth of the connections and all of them, so that what is allocated once does not count.
    def idle_bytes(name)
      with(name) do |server, client|
        first = client.tell("open", @idle / 8)[:open]
        before = settled(server)
        all = client.tell("open", @idle - first)[:open]
        ((settled(server) - before) / (all - first).to_f).round
      end
    end

    # Accepting goes on for a while after connections are open.
    def settled(server)
      bytes = nil
      20.times do
        sleep 0.3
        now = Processes.anonymous_bytes(server.pid)
        return now if now == bytes

        bytes = now
      end
      bytes
    end
  end
end

Bench::RawRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
