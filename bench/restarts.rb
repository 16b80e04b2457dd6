# frozen_string_literal: true

# Measures what restarts cost clients that keep their connections and never send a request twice: `ruby
# bench/restarts.rb --phased 100 --full 20 --single 20 --program 50 --rackup 20 --rails 20 [--tls] [--http2]`.
# restart_client.c sends requests and counts. A restart is over when the new processes serve and the old ones have gone.
# Writes a line for each restart that lost a request, and a table at the end. Suitable for thousands of restarts.
# SPDX-License-Identifier: MIT

require "json"
require "optparse"
require_relative "programs"

module Bench
  # The client of restarts as a process.
  class RestartClient
    PROGRAM = "restart_client"
    LOST = %w[eof reset cut refused status nonsense silent].freeze

    # @param target [Integer, String] a port, or unix:PATH
    # @param words [Array<String>] see restart_client --help
    def initialize(target, *words)
      @pipe = IO.popen([Programs.path(self.class::PROGRAM), *words, target.to_s], "r+")
    end

    # @return [Hash{String => Integer}] since the last call
    def counts
      @pipe.puts
      read
    end

    # Waits until this many more answers have come.
    # @return [Hash{String => Integer}] since the last call
    def more(answers, patience: 60)
      limit = now + patience
      sum = counts
      while sum["answers"] < answers
        raise "only #{sum} in #{patience} s" if now > limit

        sleep 0.01
        sum.merge!(counts) { |_, one, other| one + other }
      end
      sum
    end

    # Ends it when every request is answered.
    # @return [Hash{String => Integer}] since the last call
    def stop
      @pipe.close_write
      read.tap { @pipe.close }
    end

    # @param counts [Hash{String => Integer}]
    # @return [Integer] handshakes that resumed no session: each connection may have one before there is a ticket
    def self.full_handshakes(counts)
      counts["handshakes"] - counts["resumed"]
    end

    # @param counts [Hash{String => Integer}]
    # @return [Hash{String => Integer}] the losses
    def self.lost(counts)
      counts.slice(*LOST).reject { |_, number| number.zero? }
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def read
      line = @pipe.gets or raise "the client has ended"
      JSON.parse(line)
    end
  end

  # The same with streams of HTTP/2: http2_client opens a connection again when the server has said that it leaves and
  # the last stream is answered. The server has to say which streams it still answers, so none may be lost.
  class HTTP2RestartClient < RestartClient
    PROGRAM = "http2_client"
    STREAMS = 4
    NAMES = { "answers" => "requests", "reset" => "errors", "cut" => "refused", "refused" => "connect_errors",
              "status" => "non_2xx" }.freeze

    # @param port [Integer]
    # @param connections [Integer]
    # @param tls [Boolean]
    def initialize(port, connections, tls:)
      super("127.0.0.1:#{port}/", "--told", *("--tls" if tls), "-c", connections.to_s, "-m", STREAMS.to_s)
    end

    # @return [Hash{String => Integer}] since the last call
    def stop
      counts.tap { @pipe.close }
    end

    private

    def read
      said = super
      Hash.new(0).merge(NAMES.transform_values { |name| said.fetch(name) })
    end
  end

  # A Rondo in its own folder. Its log says how far a restart is.
  class RestartedServer
    BOOTED = /- Worker \d+ \(PID: (\d+)\) booted/

    # @return [Integer]
    attr_reader :port

    APP = "->(env) { [200, { 'content-type' => 'text/plain' }, ['hello']] }"
    # All of its routes are {APP}.
    RAILS = <<~RUBY.freeze
      require "rails"
      require "action_controller/railtie"
      class Restarted < Rails::Application
        config.load_defaults 7.0
        config.root = File.expand_path("..", __dir__)
        config.eager_load = true
        config.secret_key_base = "a" * 64
        config.logger = Logger.new(nil)
        config.hosts.clear
        routes.append { ["/", "*any"].each { |path| match path, to: #{APP}, via: :all } }
      end
    RUBY

    # @param workers [Integer] 0: a single process
    # @param by [Symbol] :program, which calls Rondo.start; :rackup; :rails, by bin/rails server; others: the command
    # @param tls [Boolean]
    # @param grace [Integer, nil] milliseconds, idle_grace_ms; nil: the default
    def initialize(workers:, by: :command, tls: false, grace: nil)
      @workers = workers
      @folder = Dir.mktmpdir("rondo-restarts")
      @log = File.join(@folder, "log")
      address = tls ? Secure.address(0, Pair.new(:p256, File.join(BUILD, "certificates"))) : "tcp://127.0.0.1:0"
      words = { program: :words_of_program, rackup: :words_of_rackup, rails: :words_of_rails }
      words = words.fetch(by, :words_of_command)
      words = send(words, address, grace)
      @pid = Process.spawn({ "RACK_ENV" => "production" }, RbConfig.ruby, "-I#{ROOT}/lib", *words,
                           out: [@log, "a"], err: %i[child out], chdir: @folder)
      await("the start") { starts == 1 }
      @pids = pids
      @port = File.read(@log)[/Listening on \S+:(\d+)$/, 1].to_i
    end

    # @param signal [String]
    # @return [void] when it is over
    def restart(signal)
      File.truncate(@log, 0)
      old = @pids
      Process.kill(signal, @pid)
      await("the restart") { starts == 1 }
      @pids = pids
      await("the end of #{old}") { old.none? { |pid| File.exist?("/proc/#{pid}") } }
    end

    # @return [void]
    def stop
      Process.kill("TERM", @pid)
      Process.wait(@pid)
    ensure
      FileUtils.remove_entry(@folder)
    end

    private

    def words_of_command(address, grace)
      words = ["-b", address, "-w", @workers.to_s, "-t", "2"]
      words.push("-C", write("rondo.rb", "idle_grace_ms #{grace}\n")) if grace
      ["#{ROOT}/exe/rondo", *words, write("config.ru", "run #{APP}\n")]
    end

    def words_of_program(address, grace)
      settings = { bind: address, workers: @workers, threads: 2, idle_grace_ms: grace }.compact
      [write("program.rb", "require \"rondo\"\nRondo.start(#{APP}, **#{settings.inspect})\n")]
    end

    def words_of_rackup(address, grace)
      [Gem.bin_path("rackup", "rackup"), "-s", "rondo", "-o", host(address), "-p", "0", "-P", File.join(@folder, "pid"),
       "-O", "Config=#{write("rondo.rb", settings(grace))}", write("config.ru", "run #{APP}\n")]
    end

    def words_of_rails(address, grace)
      write("config/puma.rb", settings(grace))
      write("config/application.rb", RAILS)
      write("config.ru", "require_relative 'config/application'\nrun Rails.application.initialize!\n")
      rails = write("bin/rails", "APP_PATH = '#{@folder}/config/application'\nrequire 'rails/commands'\n")
      [rails, "server", "-u", "rondo", "-b", host(address), "-p", "0", "-e", "production"]
    end

    def settings(grace)
      "workers #{@workers}\nthreads 2\n#{"idle_grace_ms #{grace}\n" if grace}"
    end

    # The host may be a whole address with TLS.
    def host(address)
      address.start_with?("tcp:") ? "127.0.0.1" : address.sub(/:0(?=\?|\z)/, "")
    end

    def write(name, text)
      path = File.join(@folder, name)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
      path
    end

    # How often all processes that serve have started.
    def starts
      text = File.read(@log)
      @workers.zero? ? text.scan("Use Ctrl-C to stop").size : text.scan(BOOTED).size / @workers
    end

    def pids
      File.read(@log).scan(BOOTED).flatten.last(@workers).map(&:to_i)
    end

    def await(what)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      until yield
        raise "#{what} does not come:\n#{File.read(@log)}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

        sleep 0.01
      end
    end
  end

  # Kinds of restarts, one after the other.
  class Restarts
    KINDS = { phased: ["phased restart (USR1)", %w[USR1], 2], full: ["full restart (USR2)", %w[USR2], 2],
              single: ["restart of a single process (USR2)", %w[USR2], 0],
              program: ["a cluster begun by a program (USR1 and USR2 in turn)", %w[USR1 USR2], 2],
              rackup: ["a cluster under rackup (USR1, USR2 in turn)", %w[USR1 USR2], 2],
              rails: ["a cluster under bin/rails server (USR1, USR2 in turn)", %w[USR1 USR2], 2] }.freeze
    COLUMNS = { "answers" => "requests answered", "eof" => "EOF", "reset" => "reset", "cut" => "answer cut",
                "refused" => "refused", "status" => "not 200", "nonsense" => "nonsense", "silent" => "never answered",
                "closed" => "told to close", "closed_idle" => "closed idle", "pauses" => "pauses of the client" }.freeze
    TLS_COLUMNS = { "handshakes" => "handshakes", "resumed" => "resumed" }.freeze

    # @param arguments [Array<String>] the command line
    def initialize(arguments)
      @restarts = Hash.new(0)
      @clients = 16
      @words = []
      @after = 100
      OptionParser.new do |options|
        KINDS.each { |kind, (title, *)| options.on("--#{kind} N", Integer, title) { |count| @restarts[kind] = count } }
        options.on("--clients N", Integer, "connections (16)") { |count| @clients = count }
        options.on("--after N", Integer, "answers before each restart (100)") { |count| @after = count }
        options.on("--mixed", "also bodies and heads in halves, HTTP/1.0, pipelined requests, new connections") do
          @words << "--mixed"
        end
        options.on("--tls", "TLS, whose connections resume the first session") { @words << "--tls" }
        options.on("--http2", "#{HTTP2RestartClient::STREAMS} streams of HTTP/2 on each connection") { @http2 = true }
        options.on("--grace MS", Integer, "idle_grace_ms of the server: where other programs run, the client " \
                                          "itself is silent for longer than the default") { |ms| @grace = ms }
        options.on("--pause MS", "between an answer and the next request (0)") { |ms| @words.push("--pause", ms) }
        options.on("--out FILE", "write the Markdown there") { |file| @out = file }
      end.parse!(arguments)
    end

    # @return [Boolean] whether nothing was lost, and every session was resumed that could be
    def call
      Programs.build
      sums = KINDS.keys.select { |kind| @restarts[kind].positive? }.to_h { |kind| [kind, measure(kind)] }
      text = table(sums)
      @out ? File.write(@out, text) : puts(text)
      sums.values.all? { |sum| RestartClient.lost(sum).empty? && resumed?(sum) }
    end

    private

    def words
      [*@words, *("--http2" if @http2), *(["--grace", @grace] if @grace)]
    end

    def resumed?(sum)
      @http2 || RestartClient.full_handshakes(sum) <= @clients
    end

    def start_client(port)
      return HTTP2RestartClient.new(port, @clients, tls: tls?) if @http2

      RestartClient.new(port, "-c", @clients.to_s, *@words)
    end

    def tls?
      @words.include?("--tls")
    end

    def columns
      return COLUMNS.slice("answers", *HTTP2RestartClient::NAMES.keys) if @http2

      tls? ? COLUMNS.merge(TLS_COLUMNS) : COLUMNS
    end

    def measure(kind)
      _, signals, workers = KINDS.fetch(kind)
      server = RestartedServer.new(workers: workers, by: kind, tls: tls?, grace: @grace)
      client = start_client(server.port)
      sum = Hash.new(0)
      @restarts[kind].times do |number|
        add(sum, round(server, client, signals[number % signals.size]), "#{kind} #{number + 1}")
      end
      add(sum, client.stop, "#{kind}, the end")
    ensure
      server&.stop
    end

    def round(server, client, signal)
      before = client.more(@after)
      server.restart(signal)
      before.merge(client.counts) { |_, one, other| one + other }
    end

    def add(sum, counts, where)
      lost = RestartClient.lost(counts)
      warn "bench: #{where}: #{lost}, #{counts["pauses"]} pauses of the client" unless lost.empty?
      sum.merge!(counts) { |_, one, other| one + other }
    end

    def table(sums)
      rows = sums.map do |kind, sum|
        "| #{[KINDS.fetch(kind).first, @restarts[kind], *sum.values_at(*columns.keys)].join(" | ")} |"
      end
      "# Restarts, #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC\n\n" \
        "#{@clients} clients that keep their connections, ask again as soon as they are answered and never send a " \
        "request twice#{"; #{words.join(" ")}" if words.any?}.\n\n" \
        "| | restarts | #{columns.values.join(" | ")} |\n|#{"---|" * (columns.size + 2)}\n#{rows.join("\n")}\n"
    end
  end
end

exit(Bench::Restarts.new(ARGV).call) if $PROGRAM_NAME == __FILE__
