# frozen_string_literal: true

# Measures scenarios of HTTP/2 with the client of http2_client.c, and knows how each server begins with HTTP/2. Used by
# servers.rb and measure.rb.
# SPDX-License-Identifier: MIT

require "json"
require "open3"

module Bench
  # The servers that speak HTTP/2, and how each is told to.
  module Http2
    SECURE = %w[rondo nginx nghttpd falcon itsi].freeze
    PLAIN = %w[rondo nginx nghttpd].freeze # which speak it without TLS, too

    module_function

    # @return [Boolean] whether the server can serve such a scenario
    def speaks?(name, tls:)
      (tls ? SECURE : PLAIN).include?(name)
    end

    # @param folder [String] of the server, with its nginx.conf
    def nginx(folder)
      path = File.join(folder, "nginx.conf")
      File.write(path, File.read(path).sub(/listen [^;]*/, "\\0 http2"))
    end

    # @return [Array<String>] the command; without a {Pair} it speaks HTTP/2 without TLS, and nothing else
    def nghttpd(port, folder, pair = nil)
      File.write(File.join(folder, "index.html"), "Hello, World!")
      secure = pair ? [pair.key, pair.cert] : []
      ["nghttpd", *("--no-tls" unless pair), "-a", "127.0.0.1", "-d", folder, port.to_s, *secure]
    end

    # @return [String, nil]
    def nghttpd_version
      Open3.capture2e("nghttpd", "--version").first[%r{nghttp2/([0-9.]+)}, 1]
    rescue Errno::ENOENT
      nil
    end

    # @return [Boolean] whether a server answers there
    def answers?(port, tls:)
      words = ["-n", "1", "-d", "0.5", *("--tls" if tls)]
      said = IO.popen([Programs.path("http2_client"), *words, "127.0.0.1:#{port}/"], &:read)
      !said.empty? && JSON.parse(said)["requests"] == 1
    end
  end

  # The client, started once for each measurement; what {Client} is for HTTP/1.1.
  class Http2Client
    # @param scenario [Scenario]
    # @param tls [Boolean]
    def initialize(scenario, tls: false)
      @scenario = scenario
      @tls = tls ? ["--tls"] : []
    end

    # @return [Hash{String => Object}] its counts
    # @raise [Silent]
    def run(port, seconds, *words)
      counted = ask(port, "-d", seconds.to_s, *load, *@scenario.client_options, *words, page: @scenario.page)
      raise Silent, "no answers" if (counted["requests"] + counted["beside"]["requests"]).zero?

      counted
    end

    # A few requests, whatever the scenario is.
    def warm_up(port, seconds)
      raise Silent, "no answers" if ask(port, "-d", seconds.to_s, "-c", "4")["requests"].zero?
    end

    # As {Client#idle}.
    def idle(port, count)
      IO.popen([*base, "--idle", count.to_s, "127.0.0.1:#{port}/"], "r+") do |io|
        yield JSON.parse(io.gets || '{"idle": 0}')["idle"]
      end
    end

    # @yieldparam counts [Proc] answers what was counted since it was called before
    def told(port)
      IO.popen([*base, "--told", *load, "127.0.0.1:#{port}#{@scenario.page}"], "r+") do |io|
        yield(lambda do
          io.puts
          JSON.parse(io.gets || raise(Silent, "the client has ended"))
        end)
      end
    end

    private

    def ask(port, *words, page: "/")
      said = IO.popen([*base, *words, "127.0.0.1:#{port}#{page}"], &:read)
      raise Silent, "the client got no answer" if said.empty?

      JSON.parse(said)
    end

    def base
      [Programs.path("http2_client"), "--pin", CLIENT_CPU.to_s, *@tls]
    end

    def load
      ["-c", @scenario.connections.to_s, "-m", @scenario.http2.to_s]
    end
  end

  # The kinds of scenarios that {Contestant} measures with it.
  module Http2Figures
    UPLOAD = 100_000_000
    STUCK_S = 5
    PIN_S = 2
    QUIET_S = 2.0

    private

    # The shares of connections of HTTP/1.1 beside those of HTTP/2.
    def shared_figures(seconds)
      cpu = @running.cpu_us
      counted = @client.run(@running.port, seconds)
      beside = counted["beside"]
      found = derive(counted, @running.cpu_us - cpu)
      found.merge(part: counted["part_beside"], max_over_min: beside["conn_max"].to_f / [beside["conn_min"], 1].max,
                  beside_p99_us: beside["p99_us"], errors: counted["errors"] + beside["errors"])
    end

    # 100 MB over HTTP/2, then over HTTP/1.1.
    def upload_figures(_seconds)
      own = upload("-c", "1")
      other = upload("-c", "0", "--beside", "1")
      { mb_per_s: own, http1_mb_per_s: other, over_http1: own / other }
    end

    def upload(*words)
      counted = @client.run(@running.port, 60, "-n", "1", "--body", UPLOAD.to_s, *words)
      raise Silent, "an upload was lost" if counted["requests"] + counted["beside"]["requests"] != 1

      UPLOAD / 1e6 / counted["seconds"]
    end

    # A plain request after the other, then the same while the connection also downloads.
    def downloading_figures(seconds)
      quiet = @client.run(@running.port, seconds)
      busy = @client.run(@running.port, seconds, "--download", @scenario.path)
      raise Silent, "nothing was downloaded" if busy["downloads"].zero?

      { quiet_p99_us: quiet["p99_us"], p99_us: busy["p99_us"], over_quiet: busy["p99_us"] / quiet["p99_us"],
        mb_per_s: busy["download_bytes"] / 1e6 / busy["seconds"], errors: quiet["errors"] + busy["errors"] }
    end

    # Files and PINGs on connections that are opened while Ruby is stuck.
    def stuck_streams_figures(_seconds)
      stuck = Thread.new { ask_stuck(STUCK_S) }
      sleep 0.2
      counted = @client.run(@running.port, STUCK_S - 1.2)
      raise Silent, "Ruby was not stuck" unless stuck.alive?

      { longest_ms: counted["longest_us"] / 1000, ping_longest_ms: counted["ping_longest_us"] / 1000,
        worst_ms: counted.values_at("longest_us", "ping_longest_us").max / 1000, p50_us: counted["p50_us"],
        answers: counted["requests"], pings: counted["pings"], errors: lost(counted) }
    ensure
      stuck&.join
    end

    # Connections among two workers, of which one is stuck for a while. The length of an answer says whose it is.
    def stranded_streams_figures(_seconds)
      @client.told(@running.port) do |counts|
        sleep 0.5
        quiet, cpu = within(QUIET_S, counts)
        stuck = Thread.new { ask_stuck(PIN_S) }
        sleep 0.2
        pinned, pinned_cpu = within(PIN_S - 0.5, counts)
        length = stuck.value.bytesize
        stranded_figures_of(quiet, cpu / quiet["requests"], pinned, pinned_cpu, length, counts.call)
      end
    end

    # @return [Array] what was counted in that time, and the CPU time used
    def within(seconds, counts)
      counts.call
      cpu = @running.cpu_us
      sleep seconds
      [counts.call, @running.cpu_us - cpu]
    end

    def stranded_figures_of(quiet, each_us, pinned, pinned_cpu, length, after)
      stranded = quiet["conns"].zip(pinned["conns"]).filter_map { |before, now| now[0] if before[1] == length }
      added = (pinned_cpu - (each_us * pinned["requests"])) / stranded.sum if stranded.sum.positive?
      { longest_ms: [pinned, after].map { |counted| counted["longest_us"] }.max / 1000, added_us: added,
        answers: pinned["requests"], stranded: stranded.sum, stranded_conns: stranded.size,
        cpu_us: each_us, errors: [quiet, pinned, after].sum { |counted| lost(counted) } }.compact
    end

    def lost(counted)
      counted.values_at("errors", "connect_errors", "refused", "non_2xx").sum
    end
  end
end
