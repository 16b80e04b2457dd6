# frozen_string_literal: true

# `rondo ctl VERB`: pumactl's verbs for a running server, by its control server where it has one, by
# signals otherwise. Exit code 0, or 1 with one line on standard error.
# SPDX-License-Identifier: MIT

require "rondo/command/running_server"
require "rondo/process/control"

module Rondo
  # Parses the words behind `ctl` and does what they say.
  # @api private
  class Ctl
    # Verbs whose answer from the control server is printed.
    SHOWN = %w[stats gc-stats thread-backtraces metrics live ready].freeze
    # Requests that only read; all others are verbs.
    PAGES = %w[stats metrics live ready].freeze
    # The signals for verbs without a control server; two signals for a stop by force.
    SIGNALS = { "stop" => %w[TERM], "halt" => %w[INT QUIT], "restart" => %w[USR2], "phased-restart" => %w[USR1],
                "reopen-log" => %w[HUP], "worker-count-up" => %w[TTIN],
                "worker-count-down" => %w[TTOU], "refork" => %w[URG],
                "info" => [Signal.list.key?("INFO") ? "INFO" : "PWR"] }.freeze
    VERBS = (%w[start status live ready stats metrics] + Control::VERBS.keys - %w[publish]).freeze

    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    def initialize(arguments, out: $stdout, err: $stderr)
      @arguments = arguments
      @out = out
      @err = err
      @server = RunningServer.new
    end

    # @return [Integer] 0 or 1
    def run
      verb, *rest = parser.parse(@arguments)
      return @done if @done

      raise Error, "the verb is missing; use one of #{VERBS.join(", ")}" unless verb
      raise Error, "unknown verb #{verb}#{Server.nearest(verb, VERBS)}" unless VERBS.include?(verb)
      raise Error, "too many arguments: #{rest.join(" ")}" if rest.any?

      perform(verb)
    rescue OptionParser::ParseError, Error => e
      CommandLine.fail_with(e, parser, @err)
    end

    private

    def parser
      OptionParser.new do |options|
        options.banner = "Usage: rondo ctl VERB [options]\n\nVerbs: #{VERBS.each_slice(6).map { |some| some.join(" ") }
                                                                          .join("\n       ")}\n\n"
        options.require_exact = true
        @server.define(options)
        options.on("-Q", "--quiet", "print nothing but the answer of the server") { @quiet = true }
        options.on("-h", "--help", "show this text") do
          @out.puts options.help
          @done = 0
        end
      end
    end

    def perform(verb)
      return start if verb == "start"

      @server.locate
      if verb == "status"
        status
      elsif @server.url
        by_url(verb)
      else
        by_signal(verb)
      end
      0
    end

    def status
      @server.url ? check(@server.client.get("/status")) : signal([0])
      say "Rondo is started"
    rescue ControlClient::Unreachable, Errno::ESRCH => e
      raise Error, "Rondo is not running: #{e.message}"
    end

    def by_url(verb)
      client = @server.client
      response = PAGES.include?(verb) ? client.get("/#{verb}") : client.post("/#{verb}")
      if %w[live ready].include?(verb) && response.status == 503
        @out.puts response.body
        raise Error, "the server is not #{verb}"
      end
      check(response)
      say "Command #{verb} sent success" unless %w[live ready].include?(verb)
      @out.puts response.body if SHOWN.include?(verb)
    end

    def check(response)
      return if response.ok?
      raise Error, "#{response.reason} (#{@server.url})" if response.status == 403

      raise Error, "the server says: #{response.reason}"
    end

    def by_signal(verb)
      names = SIGNALS[verb] or
        raise Error, "#{verb} needs the control server, and only the process id #{@server.pid} is known: name " \
                     "the server by -S STATE or --control-url URI"
      signal(names)
      say "Command #{verb} sent success"
    rescue Errno::ESRCH
      raise Error, "there is no process #{@server.pid}"
    end

    def signal(names)
      names.each { |name| Process.kill(name, @server.pid) }
    rescue Errno::EPERM
      raise Error, "process #{@server.pid} belongs to another user"
    end

    # A server with the options of this command line.
    def start
      require "rondo/command/cli"
      options = { state: "--state", pidfile: "--pidfile", url: "--control-url", token: "--control-token",
                  config: "--config", environment: "--environment" }
      CLI.new(options.flat_map { |name, flag| (value = @server.given[name]) ? [flag, value] : [] }).run
    end

    def say(line)
      @out.puts line unless @quiet
    end
  end
end
