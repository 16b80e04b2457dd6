# frozen_string_literal: true

# Measures how two workers treat their clients: `ruby bench/cluster.rb [--out FILE] [SERVER...]`. The share of each
# client (client.c), the waits behind a stuck worker, the cost of a restart or a death (crowd.rb). No process is pinned
# to a CPU, because two workers have to run at the same time. Figures are of one run, servers one after the other.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "crowd"
require_relative "measure"
require_relative "servers"

module Bench
  # Servers with two workers, and the measurements on them.
  class ClusterRun
    WORKERS = 2
    COLUMNS = {
      even: "10 clients: connections of each worker", within: "max/min within a worker",
      overall: "max/min over all", quick: "7 quick of 10, max/min", share64: "64 clients: busiest worker's share",
      alone: "longest wait of 10 clients, ms", sleep: "beside a sleep of 2 s", loop: "beside a loop of 2 s",
      lost: "requests lost by a killed worker", phased: "failed in phased restarts", full: "failed in full restarts"
    }.freeze

    def initialize(arguments)
      @seconds = 2.0
      @rounds = 5
      @restarts = 5
      OptionParser.new do |options|
        options.on("--seconds S", Float, "of each load (2)") { |seconds| @seconds = seconds }
        options.on("--rounds N", Integer, "of each load (5)") { |count| @rounds = count }
        options.on("--restarts N", Integer, "of each kind (5)") { |count| @restarts = count }
        options.on("--out FILE", "write the Markdown there") { |file| @out = file }
      end.parse!(arguments)
      @names = arguments.empty? ? commands.keys : arguments
    end

    # @return [void]
    def call
      Programs.build
      rows = @names.map { |name| row(name) }
      text = "# Two workers, #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC\n\n" \
             "#{@rounds} loads of #{@seconds} s each, median (worst); #{@restarts} restarts of each kind; " \
             "`-`: no such thing.\n\nVersions: #{versions}.\n\n" \
             "| server | #{COLUMNS.values.join(" | ")} |\n|#{"---|" * (COLUMNS.size + 1)}\n#{rows.join("\n")}\n"
      @out ? File.write(@out, text) : puts(text)
    end

    private

    def versions
      @names.map { |name| Servers.all.fetch(name) }.map { |server| "#{server.title} #{server.version.call}" }.join(", ")
    end

    def commands
      @commands ||= {
        "rondo" => [["-w", "2", "-t", "2"], ["-w", "2", "-t", "1"]],
        "puma" => [["-w", "2", "-t", "2:2"], ["-w", "2", "-t", "1:1"]],
        "iodine" => [["-w", "2", "-t", "2"], ["-w", "2", "-t", "1"]],
        "falcon" => [["-n", "2"], ["-n", "2"]],
        "itsi" => [%w[2 2], %w[2 1]],
        "nginx" => [[], []]
      }
    end

    def row(name)
      warn "bench: #{name}"
      two, one = commands.fetch(name)
      found = with(name, two) { |server| shares(server, name) }
      found.merge!(with(name, one) { |server| stuck(server) }) unless name == "nginx"
      found.merge!(with(name, two) { |server| ends(server, name) }) if %w[rondo puma].include?(name)
      "| #{name} | #{COLUMNS.keys.map { |key| found.fetch(key, "-") }.join(" | ")} |"
    rescue Running::BootError => e
      "| #{name} | #{e.message.lines.first.chomp} |#{" - |" * (COLUMNS.size - 1)}"
    end

    def with(name, words)
      running = Running.new(server(name, words), "cluster", wrapper: [])
      sleep 1 # until both workers are there
      yield running
    ensure
      running&.stop
    end

    def server(name, words)
      known = Servers.all.fetch(name == "nginx" ? "nginx" : name)
      command = lambda do |port, app, folder, _|
        next Servers.nginx_with_workers(port, folder, WORKERS) if name == "nginx"

        head = known.command.call(port, app, folder, 1)
        Servers.with_workers(name, head, words, app, port)
      end
      known.dup.tap { |copy| copy.command = command }
    end

    # ---- the share of each client ----

    # Counted by the C client, which does nothing else meanwhile; median and worst of the rounds.
    def shares(server, name)
      rounds = Array.new(@rounds) { one_round(server, name) }
      found = { overall: middle_and_worst(rounds, :overall) }
      return found if name == "nginx"

      found.merge(even: rounds.last[:even], within: middle_and_worst(rounds, :within),
                  quick: middle_and_worst(rounds, :quick), share64: format("%.2f", busiest_share(server)))
    end

    def one_round(server, name)
      ten = load(server, 10, @seconds)
      return { overall: spread(ten) } if name == "nginx"

      groups = by_worker(ten)
      { overall: spread(ten), even: groups.map(&:size).sort.reverse.join(":"),
        within: groups.map { |conns| spread(conns) }.max, quick: spread(beside_slow_ones(server)) }
    end

    def middle_and_worst(rounds, key)
      figures = rounds.map { |round| round[key] }.sort
      "#{format("%.3f", figures[figures.size / 2])} (#{format("%.3f", figures.last)})"
    end

    def busiest_share(server)
      by_worker(load(server, 64, 1)).map(&:size).max / 64.0
    end

    def beside_slow_ones(server)
      slow = Thread.new { load(server, 3, @seconds + 0.4, "/slow") }
      sleep 0.2
      load(server, 7, @seconds).tap { slow.join }
    end

    # @return [Array<Array(Integer, Integer)>] answers and length of the last one, by connection
    def load(server, connections, seconds, path = "/")
      command = [Programs.path("client"), "--json", "-c", connections.to_s, "-d", seconds.to_s,
                 "127.0.0.1:#{server.port}#{path}"]
      JSON.parse(IO.popen(command, &:read)).fetch("conns")
    end

    def by_worker(conns)
      conns.group_by(&:last).values
    end

    def spread(conns)
      counts = conns.map(&:first)
      counts.max.to_f / [counts.min, 1].max
    end

    # ---- waits ----

    # Without a stuck worker, for comparison: the effect of the machine and the client on the waits.
    def stuck(server)
      GC.disable # a pause of the client does not count against the server
      %i[alone sleep loop].to_h { |kind| [kind, format("%.1f", longest_wait(server, kind))] }
    ensure
      GC.enable
    end

    def longest_wait(server, kind)
      crowd = Crowd.new(server.port, Array.new(9, "/"), fresh: true)
      crowd.run(0.3)
      holder = Crowd.ask_later(server.port, "/#{kind}") unless kind == :alone
      crowd.run(2.2).longest_ms
    ensure
      holder&.close
    end

    # ---- deaths and restarts ----

    def ends(server, _name)
      found = { lost: under_load(server) { kill_a_worker(server) } }
      found[:phased] = under_load(server) { restarts(server, "USR1") }
      found[:full] = under_load(server) { restarts(server, "USR2") }
      found
    end

    def under_load(server)
      crowd = Crowd.new(server.port, Array.new(8, "/"), fresh: true)
      thread = Thread.new { crowd.run_until_told }
      sleep 0.3
      yield
      sleep 1
      crowd.tell
      thread.value.failed
    end

    def kill_a_worker(server)
      Process.kill("KILL", Crowd.ask(server.port, "/").to_i)
    end

    # One after the other; each has time to finish.
    def restarts(server, signal)
      @restarts.times do
        Process.kill(signal, server.pid)
        sleep 2.5
      end
    end
  end
end

Bench::ClusterRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
