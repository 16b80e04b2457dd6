# frozen_string_literal: true

# Measures outgoing WebSockets: `ruby bench/connect.rb [--rounds N] [--seconds S] [--connections N] [CALLER...]`. A
# thousand of them, all to one echo server, which is Rondo on the other CPU. CPU time of the calling process per message
# that has come back, and its memory per idle connection, beside iodine 0.7.60 and a client in C with epoll
# (push_client.c). The callers of a round are measured one after the other, as the servers in raw.rb.
# SPDX-License-Identifier: MIT

require_relative "raw"

module Bench
  # The peer of all of them.
  class EchoServer < RawServer
    PROGRAM = <<~'RUBY'
      class Echo
        def on_open(client) = client.write("ready")
        def on_message(client, data) = client.write(data)
      end
      require "rondo"
      app = lambda do |env|
        env["rack.upgrade"] = Echo.new if env["rack.upgrade?"]
        [200, {}, []]
      end
      server = Rondo::Server.new(app, min_threads: 1, max_threads: 1, max_connections: 50_000)
      server.listen("tcp://127.0.0.1:#{ARGV.first}")
      server.run
    RUBY

    private

    def command(_name)
      [Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", PROGRAM, @port.to_s]
    end
  end

  # A process that makes connections, and gets its commands line by line: those of push_client.c.
  class Caller < Dialogue
    # Whatever comes back goes out again, until time is over.
    COMMANDS = <<~'RUBY'
      class Ball
        def on_open(_client) = nil
        def on_close(client) = client ? nil : abort("a connection could not be made")

        def on_message(client, data)
          return READY << client if data == "ready"

          $deliveries += 1
          client.write(data) unless $is_over
        end
      end
      READY = Queue.new
      BALLS = []
      URL = "ws://127.0.0.1:#{ARGV.first}/echo"
      $deliveries = 0

      def open_more(count)
        count.times { call(URL, Ball.new) }
        count.times { BALLS << READY.pop }
        puts %({"open": #{BALLS.size}})
      end

      def echo(bytes, seconds)
        before = $deliveries
        $is_over = false
        BALLS.each { |client| client.write("x" * bytes) }
        sleep seconds
        sleep 0.01 while $deliveries == before # a moment in which nobody had a CPU
        $is_over = true
        puts %({"deliveries": #{$deliveries - before}})
      end

      def obey
        $stdout.sync = true
        while (verb, number, seconds = $stdin.gets&.split)
          verb == "open" ? open_more(number.to_i) : echo(number.to_i, seconds.to_f)
        end
        exit!
      end
    RUBY
    RONDO = <<~RUBY.freeze
      #{COMMANDS}
      require "rondo"
      SERVER = Rondo::Server.new(->(_env) { [200, {}, []] }, min_threads: 1, max_threads: 1, max_connections: 50_000,
                                                             max_dials: 50_000)
      SERVER.listen("tcp://127.0.0.1:0")
      def call(url, handler) = SERVER.connect(url, handler: handler)
      Thread.new { obey }
      SERVER.run
    RUBY
    IODINE = <<~RUBY.freeze
      #{COMMANDS}
      require "iodine"
      Iodine.workers = Iodine.threads = 1
      Iodine.verbosity = 2
      def call(url, handler) = Iodine.connect(url: url, handler: handler)
      Iodine.on_state(:on_start) { Thread.new { obey } }
      Iodine.start
    RUBY
    TITLES = { "floor" => "C client", "rondo" => "Rondo", "iodine" => "iodine 0.7.60" }.freeze

    # @param name [String] of {TITLES}
    # @param port [Integer] of the peer
    # @yieldparam caller [Caller]
    def self.run(name, port)
      environment = name == "iodine" ? Peers.environment : {}
      IO.popen([environment, *command(name), port.to_s], "r+", err: File::NULL) { |io| yield new(io) }
    end

    def self.command(name)
      pinned = ["taskset", "-c", SERVER_CPU.to_s]
      case name
      when "floor" then [Programs.path("push_client"), "--pin", SERVER_CPU.to_s]
      when "rondo" then [*pinned, Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", RONDO]
      when "iodine" then [*pinned, Gem.ruby, "-e", IODINE]
      end
    end
    private_class_method :command

    def pid
      @io.pid
    end
  end

  # All rounds, and their table.
  class ConnectRun < RawRun
    # @return [void]
    def call
      Process.setrlimit(:NOFILE, [4 * @connections, Process.getrlimit(:NOFILE).last].min) if @connections > 200
      Programs.build
      Programs.compile_rondo
      @server = EchoServer.new("peer", wrapper: ["taskset", "-c", CLIENT_CPU.to_s])
      rounds = Array.new(@rounds) { |index| @names.rotate(index).to_h { |name| [name, measured(name)] } }
      puts "| caller | µs of CPU per message, #{@connections} WebSockets | over the C client | over iodine | " \
           "bytes per idle connection |", "|---|---|---|---|---|"
      @names.each { |name| puts "| #{[Caller::TITLES.fetch(name), *figures(rounds, name)].join(" | ")} |" }
    ensure
      @server&.stop
    end

    private

    def read_options(arguments)
      @rounds, @seconds, @connections = 5, 2.0, 1000
      OptionParser.new do |options|
        options.on("--rounds N", Integer, "of echoes (5)") { |count| @rounds = count }
        options.on("--seconds S", Float, "of each (2)") { |seconds| @seconds = seconds }
        options.on("--connections N", Integer, "of each caller (1000)") { |count| @connections = count }
      end.parse!(arguments)
      @names = arguments.empty? ? %w[floor rondo iodine] : arguments
    end

    def figures(rounds, name)
      messages = rounds.map { |round| round.transform_values { |one| one&.fetch(:message_us) } }
      idle = middle(rounds.filter_map { |round| round[name] }.map { |one| one[:idle_bytes] })
      [number(middle(messages.map { |round| round[name] })),
       *%w[floor iodine].map { |other| number(ratio(messages, name, other)) }, idle || "-"]
    end

    # @return [Hash{Symbol => Numeric}, nil] nil: it cannot make them
    def measured(name)
      Caller.run(name, @server.port) do |caller|
        idle = idle_bytes(caller)
        caller.tell("echo", BYTES, 0.3)
        before = Processes.cpu_us(caller.pid)
        messages = caller.tell("echo", BYTES, @seconds)[:deliveries]
        { idle_bytes: idle, message_us: (Processes.cpu_us(caller.pid) - before) / messages }
      end
    rescue Silent => e
      warn "bench: #{name}: #{e.message}"
    end

    # Between an eighth of the connections and all of them, so that what is allocated once does not count.
    def idle_bytes(caller)
      first = @connections / 8
      caller.tell("open", first, "/echo")
      before = settled(caller)
      caller.tell("open", @connections - first, "/echo")
      ((settled(caller) - before) / (@connections - first).to_f).round
    end
  end
end

Bench::ConnectRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
