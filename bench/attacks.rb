# frozen_string_literal: true

# How long one client has to wait while many others are hostile: `ruby bench/attacks.rb [--out FILE] [ATTACK...]`. Small
# requests at a steady rate, first without the attack, then during it, in turn on fresh servers. The table shows the
# waits, their ratio within a round, and the growth of the server's memory. `tls` names all attacks on TLS: those of
# test/tls/attacks.rb, again and again, on a server whose bystander comes over TLS, too. `http2` names those of
# test/integration/http2/attacks.rb.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "attacker"
require_relative "dialogue"
require_relative "files"
require_relative "http2_attacker"
require_relative "programs"
require_relative "servers"
require_relative "tls_attacker"

module Bench
  # The table of attacks.
  class Attacks
    PER_SECOND = 500
    THREADS = 5
    Attack = Struct.new(:clients, :text, :descriptors, :preload, :tls, :http2, keyword_init: true) do
      # @return [Class] of the process that attacks
      def attacker
        (tls && TLSAttacker) || (http2 && HTTP2Attacker) || Attacker
      end
    end

    ALL = {
      expect: Attack.new(clients: 1100, text: "Expect: 100-continue, and no body"),
      unread: Attack.new(clients: 1100, text: "bodies in parts that nobody reads"),
      slow: Attack.new(clients: 1100, text: "whole bodies of 1 MiB that nobody reads"),
      upload: Attack.new(clients: 600, text: "uploads of 70 kB without their last byte, 1,024 descriptors",
                         descriptors: 1024),
      message: Attack.new(clients: 1000, text: "compressed messages that never end"),
      names: Attack.new(clients: 100, text: "1,000 subscriptions with names of 1,000 bytes each"),
      patterns: Attack.new(clients: 1, text: "1,000 patterns, and 50 messages a second"),
      disk: Attack.new(clients: 8, text: "uploads to a disk that takes 200 ms for each write", preload: "slow_disk")
    }.freeze

    # The number of clients is of those that are there at once.
    TLS = {
      handshakes: [4, "full handshakes, one after the other"],
      half_hellos: [1000, "a ClientHello without its last 10 bytes"],
      hellos_that_stay: [1000, "a ClientHello, and nothing after it"],
      heads_of_records: [1000, "the beginning of a record of 16 KiB"],
      huge_hellos: [50, "a ClientHello of 64 KiB and more"],
      bytes_one_by_one: [10, "a ClientHello in segments of one byte"],
      garbage: [1000, "random bytes"],
      plain_http: [1000, "plain HTTP"],
      clients_that_stop_reading: [50, "3 answers of 3 MB that nobody reads"],
      new_keys: [16, "500 requests for new keys"],
      renegotiations: [16, "50 renegotiations"],
      records_of_one_byte: [16, "an upload of 20,000 bytes in as many records"],
      small_fragments: [16, "an answer of 3 MB in records of 512 bytes"]
    }.to_h { |name, (clients, text)| [name, Attack.new(clients: clients, text: "TLS: #{text}", tls: :p256)] }.freeze

    # The number of clients is of those that are there at once.
    HTTP2 = {
      rapid_reset: [50, "1,200 requests, each with its RST_STREAM"],
      overflowing_windows: [50, "1,200 windows that overflow, so that the server resets the streams"],
      windows_of_nothing: [50, "1,200 requests, each with a WINDOW_UPDATE of one byte"],
      malformed_heads: [50, "1,200 malformed heads"],
      wrong_lengths: [50, "1,200 bodies with another length than the one in their head"],
      resets_of_old_streams: [50, "1,200 RST_STREAM for a stream that is over"],
      continuations: [50, "1,200 empty CONTINUATION"],
      settings: [50, "1,200 SETTINGS"],
      pings: [50, "1,200 PINGs"],
      empty_data: [50, "1,200 empty DATA"],
      priorities: [50, "1,200 PRIORITY"],
      priority_updates: [50, "1,200 PRIORITY_UPDATE"],
      unknown_frames: [50, "1,200 frames of an unknown type"],
      tiny_windows: [50, "1,200 WINDOW_UPDATE of one byte"],
      bombs: [50, "4 heads of 48 MB each by references to the table of HPACK"],
      half_heads: [1000, "heads without their end"],
      silent_streams: [200, "100 requests without their bodies on each connection"],
      slow_uploads: [200, "100 bodies of one byte without their end on each connection"],
      closed_windows: [100, "100 answers of 10 KB on each connection, for which there is no window"],
      windows_of_a_byte: [100, "the same with windows of one byte"],
      slow_readers: [100, "the same with open windows, and nobody reads"],
      streams_beyond_the_limit: [50, "5,000 requests on each connection at once"],
      idle: [1000, "connections that are silent"]
    }.to_h { |name, (clients, text)| [name, Attack.new(clients: clients, text: "HTTP/2: #{text}", http2: true)] }.freeze

    GROUPS = { tls: TLS, http2: HTTP2 }.freeze
    EVERY = GROUPS.values.reduce(ALL, :merge).freeze

    def initialize(arguments)
      @rounds = 5
      @seconds = 3.0
      parser = OptionParser.new do |options|
        options.banner = "usage: ruby bench/attacks.rb [options] [#{GROUPS.keys.join("|")}|#{EVERY.keys.join("|")}]..."
        options.on("--rounds N", Integer, "of each attack, each with a fresh server (5)") { |n| @rounds = n }
        options.on("--seconds S", Float, "of each measurement (3)") { |seconds| @seconds = seconds }
        options.on("--root DIR", "another build of Rondo to measure") { |root| @root = File.expand_path(root) }
        options.on("--out FILE", "write the Markdown there") { |file| @out = file }
      end
      @names = names(parser.parse(arguments).map(&:to_sym))
    end

    # @return [void]
    def call
      Programs.build
      Programs.compile_rondo unless @root
      rows = @names.map { |name| row(name, EVERY.fetch(name)) }
      text = "#{head}\n#{rows.join("\n")}\n"
      @out ? File.write(@out, text) : puts(text)
    end

    private

    def names(words)
      names = words.flat_map { |word| GROUPS[word]&.keys || [word] }
      unknown = names - EVERY.keys
      known = (GROUPS.keys + EVERY.keys).join(", ")
      abort "bench: no such attack: #{unknown.join(", ")}; there are #{known}" if unknown.any?
      names.empty? ? EVERY.keys : names
    end

    def head
      <<~TEXT.chomp
        # Beside clients that mean harm, #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC

        Rondo #{Servers.all["rondo"].version.call}, #{THREADS} threads; #{PER_SECOND} requests a second of a
        bystander; #{@rounds} rounds of #{@seconds} s in quiet, #{@seconds} s while the attack begins and #{@seconds} s
        while it goes on, medians. Clients that are thrown out come back, #{Attacker::PER_SECOND} a second; as many of
        those that may stay leave and come back. An attack on TLS is repeated as soon as it is over. Memory is the
        growth of the highest from quiet to the end of the attack.

        | attack | clients | p99 in quiet, ms | p99 beside it, ms | ratio (rounds) | longest as it begins, ms | longest then, ms | unanswered | memory, MB | KB a client |
        |---|---|---|---|---|---|---|---|---|---|
      TEXT
    end

    def row(name, attack)
      warn "bench: #{name}"
      rounds = Array.new(@rounds) { round(name, attack) }
      ratios = rounds.map { |round| round[:ratio] }.sort
      format("| %<text>s | %<clients>d | %<quiet>.2f | %<beside>.2f | %<ratio>.2f (%<least>.2f to %<most>.2f) | " \
             "%<begins>.1f | %<longest>.1f | %<errors>d | %<memory>.1f | %<each>.0f |",
             text: attack.text, clients: attack.clients, ratio: middle(ratios), least: ratios.first, most: ratios.last,
             **%i[quiet beside begins longest memory].to_h { |key| [key, middle(rounds.map { |round| round[key] })] },
             each: middle(rounds.map { |round| round[:memory] }) * 1000 / attack.clients,
             errors: rounds.sum { |round| round[:errors] })
    end

    def middle(figures)
      figures.sort[figures.size / 2]
    end

    def round(name, attack)
      running = Running.new(server(attack), "attacks", threads: THREADS, tls: attack.tls)
      return with_bystander(running) { |count| measure(running, name, attack, count) } if attack.tls

      measure(running, name, attack, -> { with_bystander(running, &:call) })
    ensure
      running&.stop
    end

    def measure(running, name, attack, count)
      quiet = count.call
      before = running.peak_bytes { nil } # what is resident now
      found = nil
      after = running.peak_bytes { found = beside_attack(running, name, attack, count) }
      figures(quiet, *found).merge(memory: (after - before) / 1e6)
    end

    # @return [Array] what the bystander counted as it began, and then
    def beside_attack(running, name, attack, count)
      attacker = attack.attacker.start(running.port, name, attack.clients)
      found = Array.new(2) { count.call }
      gone = Process.wait(attacker, Process::WNOHANG)
      abort "bench: #{name}: the attackers gave up" if gone
      found
    ensure
      Process.kill(:KILL, attacker) && Process.wait(attacker) if attacker && !gone
    end

    def figures(quiet, begins, beside)
      { begins: begins[:longest_us] / 1000, quiet: quiet[:p99_us] / 1000, beside: beside[:p99_us] / 1000,
        ratio: beside[:p99_us] / quiet[:p99_us],
        longest: beside[:longest_us] / 1000, errors: [quiet, begins, beside].sum { |found| found[:http_errors] } }
    end

    # A bystander over TLS has its connections before the attack begins: a new one waits behind the attackers'.
    # @yieldparam count [Proc] lets it ask for the length of one measurement, and answers what it counted
    def with_bystander(running)
      options = running.secure? ? %w[--tls full --stay] : []
      DownloadClient.run(running.port, *options) do |client|
        yield -> { client.tell("fetch", "/", 13, 0, @seconds, PER_SECOND) }
      end
    end

    def server(attack)
      known = Servers.all.fetch("rondo")
      known.dup.tap do |copy|
        copy.command = ->(port, app, *) { command(attack, "tcp://127.0.0.1:#{port}", app) }
        copy.secure = ->(port, app, _, _, pair) { command(attack, Secure.address(port, pair), app) }
        copy.environment = known.environment.merge(preload(attack))
      end
    end

    def command(attack, address, app)
      [*limit(attack), Gem.ruby, "-I", File.join(root, "lib"), File.join(root, "exe", "rondo"),
       "-t", THREADS.to_s, "-b", address, "-q", app]
    end

    def root
      @root || ROOT
    end

    def limit(attack)
      attack.descriptors ? ["prlimit", "--nofile=#{attack.descriptors}"] : []
    end

    def preload(attack)
      attack.preload ? { "LD_PRELOAD" => Programs.library(attack.preload) } : {}
    end
  end
end

Bench::Attacks.new(ARGV).call if $PROGRAM_NAME == __FILE__
