# frozen_string_literal: true

# The servers of fibers.rb and neverblock.rb, and how these measure them: one after the other, each round in processes
# of their own, because a server that is slow goes on with what its clients have left.
# SPDX-License-Identifier: MIT

require_relative "debian13"
require_relative "measure"
require_relative "report"

module Bench
  # Rondo with fibers and with threads, Puma, Falcon and Node.
  module FiberServers
    NAMES = %w[fibers fibers33 threads puma puma5 puma50 falcon node].freeze

    module_function

    # @param names [Array<String>] of {NAMES}
    # @param environment [Hash{String => String}] for their applications
    # @param fibers [Integer]
    # @return [Array<Server>] those that are installed, in this order; the others are named
    def chosen(names, environment:, fibers:)
      servers = all(fibers).select { |server| names.include?(server.name == "rondo" ? "fibers" : server.name) }
      ready, missing = servers.partition(&:installed?)
      warn "bench: not there: #{missing.map(&:title).join(", ")}" if missing.any?
      ready.first.name = "rondo" if ready.first&.name == "fibers33" # where it is alone, the goals are its own
      ready.each { |server| server.environment = server.environment.merge(environment) }
    end

    # Builds all that is measured.
    #
    # @param connections [Integer]
    # @return [void]
    def prepare(connections)
      soft, hard = Process.getrlimit(:NOFILE)
      Process.setrlimit(:NOFILE, ((2 * connections) + 1000).clamp(soft, hard))
      Programs.build
      Programs.compile_rondo
      warn "bench: Rondo does not compile for Ruby 3.3" if Debian13.there? && !Debian13.compile_rondo
    end

    # @return [String] the machine, and what is compared on it
    def versions
      model = File.read("/proc/cpuinfo")[/^model name\s*:\s*(.*)$/, 1]
      there = { "Rondo" => Servers.rondo.version.call, "Puma" => Peers.version("puma"), "Node" => node_version,
                "Falcon" => falcon.version.call, "Async" => Debian13.version("async") }
      rubies = [RUBY_DESCRIPTION[/\Aruby \S+/], Debian13.ruby_version].compact
      "#{model}, #{Etc.nprocessors} CPUs; Linux #{Etc.uname[:release][/\A\d+\.\d+/]}; #{rubies.join(" and ")}. " \
        "Server or asking process on CPU #{SERVER_CPU}, client and backend on CPU #{CLIENT_CPU}. " \
        "Versions: #{there.compact.map { |pair| pair.join(" ") }.join(", ")}."
    end

    # The name is "rondo", because goals are those of the server with this name.
    def all(fibers)
      options = ->(threads) { ["--fibers", fibers.to_s, "-t", [threads, 3].min.to_s] }
      title = "Rondo --fibers #{fibers}"
      [rondo("rondo", title, &options), rondo_inside("#{title}, Ruby 3.3", &options),
       rondo("threads", "Rondo, threads only") { |threads| ["-t", threads.to_s] },
       puma("puma", "Puma, as many threads") { |threads| threads },
       puma("puma5", "Puma -t 5") { 5 }, puma("puma50", "Puma -t 50") { 50 }, falcon, node]
    end

    # @yieldparam threads [Integer] of the scenario
    # @yieldreturn [Array<String>] options
    def rondo(name, title)
      own = Servers.rondo
      command = ->(port, app, _, threads) { Servers.with_workers("rondo", nil, yield(threads), app, port) }
      version = name == "rondo" ? -> { own.version.call if fibers? } : own.version
      Server.new(name: name, title: title, version: version, command: command, apps: [:rack],
                 environment: own.environment)
    end

    # In the Ruby of Debian 13.
    def rondo_inside(title)
      command = lambda do |port, app, _, threads|
        Debian13.ruby(Debian13.path(File.join(ROOT, "exe", "rondo")), *yield(threads),
                      "-b", "tcp://127.0.0.1:#{port}", "-q", Debian13.path(app))
      end
      version = -> { Servers.rondo.version.call if fibers? && Debian13.version("rack") }
      Server.new(name: "fibers33", title: title, version: version, command: command, apps: [:rack],
                 environment: Debian13.environment)
    end

    # @return [Boolean] whether this Rondo has fibers
    def fibers?
      rondo = [Gem.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe", "rondo")]
      @fibers ||= IO.popen([*rondo, "--help"], &:read).include?("--fibers")
    end

    def puma(name, title)
      command = lambda do |port, app, _, threads|
        count = yield(threads)
        Servers.with_workers("puma", nil, ["-w", "0", "-t", "#{count}:#{count}", "-q"], app, port)
      end
      Server.new(name: name, title: title, version: -> { Peers.version("puma") }, command: command, apps: [:rack],
                 environment: Peers.environment)
    end

    # The newest one where Debian 13 is, else the one of this Ruby.
    def falcon
      here = Servers.all.fetch("falcon")
      return here unless Debian13.version("falcon")

      command = lambda do |port, app|
        Debian13.command("falcon", "serve", "-n", "1", "-b", "http://127.0.0.1:#{port}", "-c", Debian13.path(app))
      end
      bin = Debian13.path(File.join(Debian13::BUILT, "gems", "bin"))
      environment = Debian13.environment.then { |all| all.merge("PATH" => "#{bin}:#{all["PATH"]}") }
      Server.new(name: "falcon", title: "Falcon, Ruby 3.3", version: -> { Debian13.version("falcon") },
                 command: ->(port, app, *) { command.call(port, app) }, apps: [:rack], environment: environment)
    end

    def node
      command = ->(port, app, *) { ["node", app.sub(/\.ru\z/, ".js"), port.to_s] }
      Server.new(name: "node", title: "Node", version: -> { node_version }, command: command, apps: [:rack],
                 environment: {})
    end

    def node_version
      IO.popen(%w[node --version], &:read)[/v(\S+)/, 1]
    rescue Errno::ENOENT
      nil
    end
    private_class_method :all, :rondo, :rondo_inside, :puma, :falcon, :node, :node_version
  end

  # One server in one scenario, with a process of its own for each round.
  class FreshContestant < Contestant
    PATIENCE_SECONDS = 30

    # @param computing [Float] seconds of a request that computes
    def initialize(server, scenario, computing:)
      super(server, scenario)
      @computing = computing
    end

    # Warms up by so few requests that even a slow server has answered all of them.
    def start
      @running = Running.new(server, @scenario.app, threads: @scenario.threads)
      client("-c", "4", "-n", "20", "-d", "20")
    rescue Running::BootError, Silent => e
      give_up(e.message)
    end

    private

    # @param words [Array<String>] options, and maybe a path at the end
    # @return [Hash{String => Numeric}] the client's counts
    def client(*words)
      path = words.last.start_with?("/") ? words.pop : "/"
      said = IO.popen([Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, *words,
                       "127.0.0.1:#{@running.port}#{path}"], &:read)
      raise Silent, "the client got no answer" if said.empty?

      JSON.parse(said)
    end

    # As load, with the most memory.
    def watched_figures(seconds)
      found = nil
      most = @running.peak_bytes { found = load_figures(seconds) }
      found.merge(peak_mb: most / 1e6)
    end

    # Memory of requests that are asleep, and plain requests beside them.
    def asleep_figures(seconds)
      asleep = [@scenario.connections / 8, @scenario.connections]
      sleepers = []
      sizes = asleep.map do |count|
        sleepers << sleeper(count - asleep_now)
        until_asleep(count)
        @running.settle
        @running.anonymous_bytes
      end
      beside = client("-c", "8", "-d", seconds.to_s)
      { bytes_asleep: (sizes.last - sizes.first) / (asleep.last - asleep.first).to_f, held: asleep_now,
        p99_us: beside["p99_us"], p99_ms: beside["p99_us"] / 1000.0, rps: beside["rps"], errors: beside["errors"] }
    ensure
      end_all(sleepers)
    end

    def sleeper(count)
      spawn(Programs.path("client"), "--pin", CLIENT_CPU.to_s, "-c", count.to_s, "-d", "600", "--leave",
            "127.0.0.1:#{@running.port}/asleep", %i[out err] => File::NULL)
    end

    def end_all(pids)
      pids.to_a.each do |pid|
        Process.kill(:KILL, pid)
        Process.wait(pid)
      end
    end

    def asleep_now
      ask("/count").to_i
    end

    def until_asleep(count)
      over = now + PATIENCE_SECONDS
      while (asleep = asleep_now) < count
        raise Silent, "#{asleep} of #{count} requests are asleep" if now > over

        sleep 0.05
      end
    end

    # Plain requests, alone and beside one that computes.
    def computing_figures(seconds)
      alone = client("-c", "8", "-d", seconds.to_s)
      load = Thread.new { client("-c", "8", "-d", (@computing * 1.5).to_s) }
      sleep @computing / 4
      began = now
      ask("/compute?#{@computing}")
      took = now - began
      beside = load.value
      { alone_ms: alone["longest_us"] / 1000.0, longest_ms: beside["longest_us"] / 1000.0, p50_us: beside["p50_us"],
        p99_us: beside["p99_us"], answers: beside["requests"], computed_s: took, errors: beside["errors"] }
    ensure
      load&.join
    end

    # Requests alone, and then beside a thread of the application that computes without end. Who answers nothing at all
    # counts as if it had answered once.
    def spinning_figures(seconds)
      alone, beside = Array.new(2) do |index|
        ask("/spin") if index == 1
        client("-c", @scenario.connections.to_s, "-d", seconds.to_s, "--leave")
      end
      { rps: alone["rps"], beside_rps: beside["rps"], kept_beside: [beside["rps"], 1 / seconds].max / alone["rps"],
        p99_us: beside["p99_us"], errors: alone["errors"] + beside["errors"] }
    end

    # A connection for each request, and no waiting without end.
    def ask(path)
      Socket.tcp("127.0.0.1", @running.port, connect_timeout: PATIENCE_SECONDS) do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        text = +""
        text << socket.readpartial(4096) while socket.wait_readable(PATIENCE_SECONDS)
        raise Silent, "#{path} got no answer"
      rescue EOFError
        text[/\r\n\r\n(?:\h+\r\n)?([^\r]*)/, 1]
      end
    rescue SystemCallError => e
      raise Silent, e.message
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end

  # A scenario whose servers are there one at a time.
  class Alone < Measurement
    # @param computing [Float] see {FreshContestant}
    def initialize(scenario, servers, computing: 2.0)
      super(scenario, servers)
      @contestants = servers.map { |server| FreshContestant.new(server, scenario, computing: computing) }
    end

    # @return [self]
    def run(rounds:, seconds:)
      over = now + scenario.within
      rounds.times do |round|
        break if round.positive? && now > over

        contestants.rotate(round).each do |contestant|
          warn "bench: #{scenario.name}: #{contestant.server.name}"
          contestant.start
          contestant.measure(seconds)
          contestant.stop
        end
      end
      self
    ensure
      contestants.each(&:stop)
    end
  end
end
