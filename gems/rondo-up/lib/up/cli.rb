# frozen_string_literal: true

# The command up_ruby: Up!'s nine options become settings of Rondo.start.
# SPDX-License-Identifier: MIT

require "optparse"
require "up"
require "rondo/process/program"

module Up
  # From the words of the command line to a server.
  module CLI
    # What getopt's users mean by a wrong command line.
    USAGE = 64
    INCOMPLETE = 2
    OPTIONS = [
      [:port, "-p", "--port PORT", Integer, "Port number the server will listen to. Default: 3000"],
      [:host, "-b", "--bind ADDRESS", "Address the server will listen to. Default: localhost"],
      [:secure, "-s", "--secure", "Use secure sockets, with -a, -c and -k"],
      [:ca, "-a", "--ca-file FILE", "File with CA certs"],
      [:cert, "-c", "--cert-file FILE", "File with the servers certificate"],
      [:key, "-k", "--key-file FILE", "File with the servers key"],
      [:log, "-l", "--log-file FILE", "Log file"],
      [:pid, "-P", "--pid-file FILE", "PID file"],
      [:workers, "-w", "--workers NUMBER", Integer, "Number of workers. Default: number of processors"]
    ].freeze
    private_constant :USAGE, :INCOMPLETE, :OPTIONS

    class << self
      # @param words [Array<String>]
      # @return [Integer] exit code
      def call(words)
        options = { host: "localhost", port: 3000, workers: "auto" }
        rest = parser(options).parse(words)
        return complain("When using -s or --secure the -a,-c- and -k options must be given too!", INCOMPLETE) if
          options[:secure] && !options.values_at(:ca, :cert, :key).all?

        Rondo.start(nil, **settings(options), rackup: file(rest.first))
        0
      rescue OptionParser::ParseError => e
        complain("up_ruby: #{e.message} (-h will show valid options)", USAGE)
      rescue Rondo::Error => e
        complain("up_ruby: #{e.message}", 1)
      end

      private

      def complain(line, code)
        warn line
        code
      end

      # @return [String] the application's file; Rondo complains about one that is not there
      def file(name)
        name ||= "config.ru"
        [name, "#{name}.ru"].find { |path| File.file?(path) } || name
      end

      # Up! has one thread in each process, and a parent without clients.
      def settings(options)
        log = options[:log]
        { bind: address(options), workers: options[:workers], threads: [1, 1], pidfile: options[:pid],
          stdout_redirect: log && [log, log, true], raise_exception_on_sigterm: false }.compact
      end

      def address(options)
        uri = Rondo::Address.tcp_uri(options[:host], options[:port])
        return uri unless options[:secure]

        words = { cert: options[:cert], key: options[:key], ca: options[:ca], verify_mode: "peer" }
        "#{uri.sub("tcp:", "ssl:")}?#{Rondo::TLS.query(words)}"
      end

      def parser(options)
        OptionParser.new("Usage: up_ruby [options] [FILE]") do |parser|
          parser.on("-h", "--help", "Show this message") { finish(parser) }
          OPTIONS.each { |name, *words| parser.on(*words) { |value| options[name] = value } }
          parser.on("-v", "--version", "Show version") { finish("Up! v#{VERSION}") }
        end
      end

      def finish(text)
        puts text
        exit 0
      end
    end
  end
end
