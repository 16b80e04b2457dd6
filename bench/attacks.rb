# frozen_string_literal: true

# How long one client has to wait while many others are hostile: `ruby bench/attacks.rb [--out FILE] [ATTACK...]`. Plain
# requests at a steady rate, first without the attack, then during it, in turn on fresh servers. The table shows the
# waits, their ratio within a round, and the growth of the server's memory.
# SPDX-License-Identifier: MIT

require "optparse"
require_relative "attacker"
require_relative "dialogue"
require_relative "files"
require_relative "programs"
require_relative "servers"

module Bench
  # The table of attacks.
  class Attacks
    PER_SECOND = 500
    THREADS = 5
    Attack = Struct.new(:clients, :text, :descriptors, :preload, keyword_init: true)

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

    def initialize(arguments)
      @rounds = 5
      @seconds = 3.0
      parser = OptionParser.new do |options|
        options.banner = "usage: ruby bench/attacks.rb [options] [#{ALL.keys.join("|")}]..."
        options.on("--rounds N", Integer, "of each attack, each with a fresh server (5)") { |n| @rounds = n }
        options.on("--seconds S", Float, "of each measurement (3)") { |seconds| @seconds = seconds }
        options.on("--root DIR", "another build of Rondo to measure") { |root| @root = File.expand_path(root) }
        options.on("--out FILE", "write the Markdown there") { |file| @out = file }
      end
      names = parser.parse(arguments).map(&:to_sym)
      unknown = names - ALL.keys
      abort "bench: no such attack: #{unknown.join(", ")}; there are #{ALL.keys.join(", ")}" if unknown.any?
      @names = names.empty? ? ALL.keys : names
    end

    # @return [void]
    def call
      Programs.build
      Programs.compile_rondo unless @root
      rows = @names.map { |name| row(name, ALL.fetch(name)) }
      text = "#{head}\n#{rows.join("\n")}\n"
      @out ? File.write(@out, text) : puts(text)
    end

    private

    def head
      <<~TEXT.chomp
        # Beside clients that mean harm, #{Time.now.utc.strftime("%Y-%m-%d %H:%M")} UTC

        Rondo #{Servers.all["rondo"].version.call}, #{THREADS} threads; #{PER_SECOND} plain requests a second of a
        bystander; #{@rounds} rounds of #{@seconds} s in quiet, #{@seconds} s while the attack begins and #{@seconds} s
        while it goes on, medians. Clients that are thrown out come back, #{Attacker::PER_SECOND} a second.

        | attack | clients | p99 in quiet, ms | p99 beside it, ms | ratio (rounds) | longest as it begins, ms | longest then, ms | unanswered | memory, MB |
        |---|---|---|---|---|---|---|---|---|
      TEXT
    end

    def row(name, attack)
      warn "bench: #{name}"
      rounds = Array.new(@rounds) { round(name, attack) }
      ratios = rounds.map { |round| round[:ratio] }.sort
      format("| %<text>s | %<clients>d | %<quiet>.2f | %<beside>.2f | %<ratio>.2f (%<least>.2f to %<most>.2f) | " \
             "%<begins>.1f | %<longest>.1f | %<errors>d | %<memory>.1f |",
             text: attack.text, clients: attack.clients, ratio: middle(ratios), least: ratios.first, most: ratios.last,
             **%i[quiet beside begins longest memory].to_h { |key| [key, middle(rounds.map { |round| round[key] })] },
             errors: rounds.sum { |round| round[:errors] })
    end

    def middle(figures)
      figures.sort[figures.size / 2]
    end

    def round(name, attack)
      running = Running.new(server(attack), "attacks", threads: THREADS)
      quiet = bystander(running)
      before = running.anonymous_bytes
      attacker = Attacker.start(running.port, name, attack.clients)
      begins = bystander(running)
      beside = bystander(running)
      figures(quiet, begins, beside).merge(memory: (running.anonymous_bytes - before) / 1e6)
    ensure
      Process.kill(:KILL, attacker) && Process.wait(attacker) if attacker
      running&.stop
    end

    def figures(quiet, begins, beside)
      { begins: begins[:longest_us] / 1000, quiet: quiet[:p99_us] / 1000, beside: beside[:p99_us] / 1000,
        ratio: beside[:p99_us] / quiet[:p99_us],
        longest: beside[:longest_us] / 1000, errors: [quiet, begins, beside].sum { |found| found[:http_errors] } }
    end

    def bystander(running)
      DownloadClient.run(running.port) { |client| client.tell("fetch", "/", 13, 0, @seconds, PER_SECOND) }
    end

    def server(attack)
      known = Servers.all.fetch("rondo")
      command = lambda do |port, app, *|
        [*limit(attack), Gem.ruby, "-I", File.join(root, "lib"), File.join(root, "exe", "rondo"),
         "-t", THREADS.to_s, "-b", "tcp://127.0.0.1:#{port}", "-q", app]
      end
      known.dup.tap do |copy|
        copy.command = command
        copy.environment = known.environment.merge(preload(attack))
      end
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
