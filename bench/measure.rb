# frozen_string_literal: true

# Measures one scenario: starts its servers, warms them up, then measures all of them in several rounds with the client
# (client.c). It keeps the client's and the kernel's figures round by round, so that ratios can be taken between
# measurements that are close in time. Used by run.rb.
# SPDX-License-Identifier: MIT

require "json"
require_relative "files"
require_relative "http2_figures"
require_relative "programs"
require_relative "push"
require_relative "scenario"
require_relative "servers"

module Bench
  # The client, started once for each measurement.
  class Client
    # @param scenario [Scenario] whose requests and options it takes
    # @param tls [Boolean] whether its connections begin with a handshake
    def initialize(scenario, tls: false)
      @scenario = scenario
      @tls = tls ? ["--tls", scenario.handshakes.to_s] : []
    end

    # @return [Hash{String => Numeric}] its counts
    # @raise [Silent] when it could not work at all
    def run(port, seconds)
      files = @scenario.requests.flat_map do |name|
        ["--request", Programs.request_file(name)]
      end
      said = IO.popen([*base, "-c", @scenario.connections.to_s, "-d", seconds.to_s, *files,
                       *@scenario.client_options, *@tls, "127.0.0.1:#{port}"], &:read)
      raise Silent, "the client got no answer" if said.empty?

      JSON.parse(said).tap { |counted| raise Silent, "no answers" if counted["requests"].zero? }
    end

    # Holds this many idle connections while the block runs.
    #
    # @yieldparam held [Integer] how many there really are
    def idle(port, count)
      IO.popen([*base, "--idle", count.to_s, *@tls, "127.0.0.1:#{port}"], "r+") do |io|
        yield JSON.parse(io.gets || '{"idle": 0}')["idle"]
      end
    end

    private

    def base
      [Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s]
    end
  end

  # One server in one scenario: measures itself once in each round.
  class Contestant
    include PushFigures
    include FileFigures
    include Http2Figures

    WARM_UP_SECONDS = 0.5
    SECONDS = %w[seconds skipped_seconds].freeze
    COMPLAINTS = { errors: "errors", non_2xx: "answers other than 2xx",
                   connect_errors: "refused connections",
                   unclosed: "connections left open in spite of Connection: close" }.freeze

    attr_reader :server, :rounds, :notes

    # @param server [Server]
    # @param scenario [Scenario]
    def initialize(server, scenario)
      @server = server
      @scenario = scenario
      tls = scenario.tls && server.title != Servers::PLAIN
      @client = (scenario.http2 ? Http2Client : Client).new(scenario, tls: tls)
      @rounds = []
      @notes = []
    end

    # Starts and warms up. An error becomes a note, and the server takes no further part.
    def start
      @running = Running.new(server, @scenario.app, threads: @scenario.threads, tls: @scenario.tls,
                                                    workers: @scenario.workers, http2: !@scenario.http2.nil?,
                                                    processes: @scenario.processes)
      if @scenario.beside
        @beside = Running.new(server, @scenario.beside, threads: @scenario.threads, processes: @scenario.processes)
      end
      warm_up
      check_file if @scenario.file && !@scenario.http2
      hello.run(@beside.port, WARM_UP_SECONDS) if @beside
      @running.pause if @scenario.restless
    rescue Running::BootError, Silent => e
      give_up(e.message)
    end

    # @return [Boolean] whether it still takes part
    def fit?
      !@running.nil?
    end

    # @return [Boolean] whether an answer of a round was wrong or missing, if each answer is checked
    def failed?
      rounds.any? { |round| round ? round[:failed].to_i.positive? : @scenario.file }
    end

    # Measures for this many seconds and appends the figures (nil when there are none) to {#rounds}.
    def measure(seconds)
      restart if @scenario.fresh && fit? && @rounds.any?
      @rounds << (fit? ? figures(seconds * @scenario.lasting) : nil)
    rescue Silent, JSON::ParserError => e
      @rounds << nil
      give_up(died_note || e.message)
    end

    # Ends its processes.
    def stop
      [@running, @beside].compact.each(&:stop)
      @running = @beside = @socket = nil
    end

    private

    def restart
      stop
      start
    end

    def warm_up
      return @client.warm_up(@running.port, WARM_UP_SECONDS) if @scenario.http2

      (warms_up_with_hello? ? hello : @client).run(@running.port, WARM_UP_SECONDS)
    end

    def warms_up_with_hello?
      @scenario.fresh || @scenario.app == "push" || (@scenario.app == "files" && @scenario.kind != :hot)
    end

    def hello
      @hello ||= Client.new(Bench.scenarios.fetch("hello"), tls: @running.secure?)
    end

    def give_up(reason)
      @notes << reason
      stop
      nil
    end

    def died_note
      return if !@running || @running.alive?

      "died in round #{@rounds.size + 1}: #{@running.last_words[0, 300]}"
    end

    def figures(seconds)
      @running.resume if @scenario.restless
      found = send(:"#{@scenario.kind}_figures", seconds)
      note = died_note
      found[:kept] = found[:rps] / beside_rps(seconds) if @beside && !note
      @running.pause if @scenario.restless
      return give_up(note) if note # half a round's figures do not count

      complain(found)
      found
    end

    def load_figures(seconds)
      cpu = @running.cpu_us
      spins = spins_so_far
      counted = @client.run(@running.port, seconds)
      spun = spins_so_far - spins
      used = @running.alive? ? @running.cpu_us - cpu : Float::NAN
      derive(counted, used).merge(spins_per_s: spun / counted["seconds"])
    end

    # A start after earlier ones, up to the first answer.
    def starting_figures(_seconds)
      stop
      began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      start
      { start_s: Process.clock_gettime(Process::CLOCK_MONOTONIC) - began - WARM_UP_SECONDS }
    end

    # The same twice: alone, and beside a second client that opens connections.
    def crowded_figures(seconds)
      quiet = load_figures(seconds)
      crowd = crowd_client(seconds + 1)
      crowded = load_figures(seconds)
      crowded.merge(quiet_p99_us: quiet[:p99_us], added_ms: (crowded[:p99_us] - quiet[:p99_us]) / 1000.0)
    ensure
      Process.wait(crowd) if crowd
    end

    def crowd_client(seconds)
      spawn(Programs.path("client"), "--json", "--pin", CLIENT_CPU.to_s, "--tls", "full", "--close", "--every", "5000",
            "-c", "64", "-d", seconds.to_s, "127.0.0.1:#{@running.port}", out: File::NULL)
    end

    # The load begins before a call that keeps the GVL. With several workers its connections are among all of them; with
    # one they are opened after that.
    def beside_stuck_figures(_seconds)
      load = Thread.new { load_figures(STUCK_SECONDS) } if @scenario.workers
      sleep 1 if load
      stuck = Thread.new { ask_stuck(STUCK_SECONDS - 2) }
      sleep 0.2 unless load
      found = load ? load.value : load_figures(STUCK_SECONDS - 3)
      found.merge(longest_ms: found[:longest_us] / 1000.0, answers: found[:requests])
    ensure
      stuck&.join
    end

    def ask_stuck(seconds)
      Socket.tcp("127.0.0.1", @running.port) do |socket|
        wire = @running.secure? ? OpenSSL::SSL::SSLSocket.new(socket).tap(&:connect) : socket
        wire.write("GET /stuck?#{seconds} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        wire.read.to_s.split("\r\n\r\n", 2).last.to_s
      end
    end

    def derive(counted, used)
      requests = counted["requests"].to_f
      megabytes = counted["bytes_in"] / 1e6
      counted.transform_keys(&:to_sym).merge(
        cpu_us: used / (requests + counted["skipped"]), busy: used / counted.values_at(*SECONDS).sum / 1e6,
        longest_over_median: counted["longest_us"] / counted["p50_us"],
        max_over_min: counted["conn_max"].to_f / [counted["conn_min"], 1].max,
        body_bytes: counted["body_max"], cpu_us_per_mb: used / megabytes,
        mb_per_cpu_s: megabytes * 1e6 / used, mb_per_s: megabytes / counted["seconds"], of_ideal: of_ideal(counted)
      ).compact
    end

    def of_ideal(counted)
      counted["rps"] / @scenario.ideal if @scenario.ideal
    end

    def spins_so_far
      @scenario.restless ? ask("/progress").to_i : 0
    end

    def beside_rps(seconds)
      @running.pause if @scenario.restless
      hello.run(@beside.port, seconds)["rps"]
    end

    # The client of the round before may have left garbage. The idle connections add to that.
    def idle_figures(_seconds)
      @scenario.http2 ? warm_up : hello.run(@running.port, WARM_UP_SECONDS)
      before = @running.anonymous_bytes
      @client.idle(@running.port, @scenario.connections) do |held|
        grown = @running.anonymous_bytes - before
        { bytes_per_connection: grown.to_f / [held, 1].max, held: held,
          errors: @scenario.connections - held }
      end
    end

    def allocations_figures(_seconds)
      made = Array.new(200) { ask("/").to_i }.drop(50).sort
      { objects: made[made.size / 2].to_f, objects_least: made.first.to_f }
    end

    # One plain request outside of the load, written by hand, because every further header would make objects.
    def ask(path)
      @socket ||= Socket.tcp("127.0.0.1", @running.port)
      @socket.write("GET #{path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
      head = @socket.gets("\r\n\r\n") || raise(EOFError)
      return @socket.read(head[/^content-length:\s*(\d+)/i, 1].to_i) unless head.match?(/chunked/i)

      body = +""
      while (size = @socket.gets("\r\n").to_i(16)).positive?
        body << @socket.read(size + 2).chomp("\r\n")
      end
      @socket.gets("\r\n") && body
    rescue SystemCallError, IOError
      @socket = nil
      raise Silent, "a plain request got no answer"
    end

    def complain(found)
      COMPLAINTS.each do |key, text|
        count = found[key].to_i
        @notes << "#{count} #{text} in round #{@rounds.size + 1}" if count.positive?
      end
    end
  end

  # All servers of one scenario, round by round.
  class Measurement
    attr_reader :scenario, :contestants

    # @param scenario [Scenario]
    # @param servers [Array<Server>] servers that cannot serve the scenario are left out
    def initialize(scenario, servers)
      @scenario = scenario
      @contestants = servers.select { |server| server.takes_part?(scenario) }
                            .map { |server| Contestant.new(server, scenario) }
    end

    # @param rounds [Integer] at least one; fewer when the scenario's time is over
    # @param seconds [Float] of each measurement
    # @return [self]
    def run(rounds:, seconds:)
      over = now + scenario.within
      contestants.each(&:start)
      rounds.times do |round|
        break if round.positive? && now > over

        # Another one starts each round, so that none always follows the same server.
        contestants.rotate(round).each { |contestant| contestant.measure(seconds) }
      end
      self
    ensure
      contestants.each(&:stop)
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
