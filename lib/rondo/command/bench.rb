# frozen_string_literal: true

# `rondo bench`: measures the user's own application, on Rondo and on other servers in turn, or a server
# of this machine that runs already. It writes one HTML file. Its parts are in command/bench: what is
# asked for (options.rb), the servers (contender.rb), the rounds (rounds.rb), the document (document.rb).
# SPDX-License-Identifier: MIT

require "json"
require "rondo"
require "rondo/process/process_loop"
require "rondo/command/bench/options"
require "rondo/command/bench/contender"
require "rondo/command/bench/running"
require "rondo/command/bench/rounds"
require "rondo/command/bench/document"
require "rondo/command/bench/report"

module Rondo
  # Parses the words behind `bench`, measures and writes the report.
  #
  # @api private
  class Bench
    # Something that cannot be measured: a message of one line.
    class Refused < Error; end

    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    def initialize(arguments, out: $stdout, err: $stderr)
      @options = Options.new(arguments)
      @out = out
      @err = err
    end

    # @return [Integer] 0, 1 when something could not be measured, 2 for a wrong command line, 130 after Ctrl-C
    def run
      @options.parse
      return done(@options.help) if @options.help?

      writable([@options.report, @options.json].compact)
      with_signals { measure }
    rescue Options::Wrong => e
      complain(e.message, 2)
    rescue Error => e
      complain(e.message, 1)
    rescue Interrupt
      complain("interrupted; nothing was written", 130)
    end

    private

    def measure
      contenders = @options.url ? [Running.new(@options)] : Contender.all(@options)
      say "about #{seconds(contenders.size)} s: #{contenders.map(&:title).join(", ")}"
      rounds = Rounds.new(contenders, @options) { |line| say line }
      rounds.run
      write(Document.new(contenders, @options).to_h)
    ensure
      # A second Ctrl-C must not leave a server behind. Each has a limit of time to end.
      %w[INT TERM HUP].each { |name| Signal.trap(name, "IGNORE") }
      Contender.stop(contenders.to_a)
    end

    def with_signals
      before = %w[TERM HUP].to_h { |name| [name, Signal.trap(name) { Thread.main.raise(Interrupt) }] }
      yield
    ensure
      before.to_h.each { |name, handler| Signal.trap(name, handler) }
      Signal.trap("INT", "DEFAULT")
    end

    def seconds(servers)
      (servers * @options.rounds * Rounds::PHASES.size * @options.seconds).ceil
    end

    def write(document)
      report = Report.new(document)
      save(@options.json, JSON.pretty_generate(document)) if @options.json
      save(@options.report, report.html)
      @out.puts report.text
      @out.puts "The report: #{@options.report}"
      0
    end

    def save(path, text)
      File.write(path, text)
    rescue SystemCallError => e
      raise Refused, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
    end

    # Before anything is measured; nothing is created yet.
    def writable(paths)
      paths.each do |path|
        place = File.exist?(path) ? path : File.dirname(path)
        fit = File.writable?(place) && (place == path ? File.file?(path) : File.directory?(place))
        raise Refused, "cannot write #{path}" unless fit
      end
    end

    def say(line)
      @out.puts "bench: #{line}"
      @out.flush
    end

    def done(text)
      @out.puts text
      0
    end

    def complain(line, code)
      @err.puts "rondo: #{Logger.escape(line.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?").split.join(" "))}"
      code
    end
  end
end
