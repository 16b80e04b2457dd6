# frozen_string_literal: true

# The command line of `rondo bench`. Every number has limits, so that a run ends.
# SPDX-License-Identifier: MIT

require "rondo/command/command_line"
require "rondo/command/bench/target"

module Rondo
  class Bench
    # What is to be measured, and how long.
    class Options
      # A command line that cannot be obeyed: exit code 2.
      class Wrong < Error; end

      # Least, most and usual value of each number.
      LIMITS = { connections: [1, Load::CONNECTIONS, 32], seconds: [0.05, 60, 2], rounds: [1, 50, 5],
                 threads: [1, 256, 3], workers: [0, 64, 0] }.freeze
      # Paths that are asked in turn, servers beside Rondo, and bytes of a header field.
      MOST_PATHS = 16
      MOST_SERVERS = 4
      MOST_HEADER = 4096

      # @return [Integer]
      attr_reader :connections, :rounds, :threads, :workers
      # @return [Float] of one measurement
      attr_reader :seconds
      # @return [String] files to write
      attr_reader :report, :json
      # @return [String] the rackup file
      attr_reader :file
      # @return [Target, nil] of a server that runs already
      attr_reader :url
      # @return [Array<String>] names of other servers
      attr_reader :against
      # @return [Array<String>]
      attr_reader :paths, :headers
      # @return [String] the environment of the application
      attr_reader :environment

      # @param arguments [Array<String>]
      def initialize(arguments)
        @arguments = arguments
        LIMITS.each { |name, (_, _, usual)| instance_variable_set(:"@#{name}", usual) }
        @report = "rondo-bench.html"
        @against = []
        @paths = []
        @headers = []
        @environment = ENV["RAILS_ENV"] || ENV["RACK_ENV"] || "production"
      end

      # @return [self]
      # @raise [Wrong]
      def parse
        rest = parser.parse(@arguments)
        return self if help?
        raise Wrong, "too many arguments: #{rest.drop(1).join(" ")}" if rest.size > 1

        place(rest.first || "config.ru")
        @paths = [@url&.path || "/"] if @paths.empty?
        raise Wrong, "--against needs an application, not an address" if @url && @against.any?

        self
      rescue OptionParser::ParseError => e
        raise Wrong, CommandLine.wrong(e, parser)
      end

      # @return [Boolean]
      def help?
        @help
      end

      # @return [String]
      def help
        parser.help
      end

      # @return [Hash{Symbol => Object}] for the report
      def to_h
        { application: @url ? nil : @file, url: @url&.to_s, paths: paths, connections: connections, seconds: seconds,
          rounds: rounds, threads: @url ? nil : threads, workers: @url ? nil : workers,
          environment: @url ? nil : environment }.compact
      end

      private

      def place(word)
        return @url = Target.parse(word) if word.match?(%r{\A[a-zA-Z][a-zA-Z+.-]*://})

        @file = File.exist?(word) || !File.exist?("#{word}.ru") ? word : "#{word}.ru"
        raise Wrong, "there is no file #{@file}" unless File.file?(@file)
      end

      def parser
        OptionParser.new do |options|
          options.require_exact = true
          options.banner = "Usage: rondo bench [options] [config.ru | http://127.0.0.1:PORT/PATH]\n\n" \
                           "Measures your application on Rondo, or a server of this machine that runs already, and " \
                           "writes\none HTML file about it.\n\n"
          what(options)
          how_long(options)
          options.on("--report FILE", "the HTML file (rondo-bench.html)") { |path| @report = path }
          options.on("--json FILE", "all figures of all rounds, too") { |path| @json = path }
          options.on("-h", "--help", "show this text") { @help = true }
        end
      end

      def what(options)
        options.on("--against NAMES", "also on these servers: #{Servers::OTHERS.keys.join(", ")}") do |names|
          names.split(",").each { |name| rival(name) }
        end
        options.on("--url PATH", "a path to ask for (/); may be repeated, then in turn") { |path| path(path) }
        options.on("--header LINE", "a field of each request, as in 'Cookie: a=b'; may be repeated") do |line|
          header(line)
        end
        options.on("-e", "--environment NAME", "of the application (#{@environment})") { |name| @environment = name }
        number(options, :threads, "-t", "application threads of each process")
        number(options, :workers, "-w", "worker processes; 0: one process without a master")
      end

      def how_long(options)
        number(options, :connections, "-c", "connections at once")
        number(options, :seconds, "-d", "length of one measurement")
        number(options, :rounds, "-r", "rounds, in which the servers take turns")
      end

      def number(options, name, short, text)
        least, most, usual = LIMITS.fetch(name)
        options.on(short, "--#{name} N", "#{text} (#{usual})") do |word|
          form = least.is_a?(Float) ? /\A\d{1,9}(\.\d{1,9})?\z/ : /\A\d{1,9}\z/
          value = word.match?(form) ? word.to_f : -1
          value = value.to_i unless least.is_a?(Float)
          unless value.between?(least, most)
            raise Wrong, "--#{name} must be a number from #{least} to #{most}, not #{word.inspect}"
          end

          instance_variable_set(:"@#{name}", value)
        end
      end

      def rival(name)
        raise Wrong, "--against: no such server: #{name}#{Server.nearest(name, Servers::OTHERS.keys)}" unless
          Servers::OTHERS.key?(name)
        raise Wrong, "--against: #{MOST_SERVERS} servers at most" if (@against |= [name]).size > MOST_SERVERS
      end

      def path(path)
        unless path.match?(%r{\A/[!-~]{0,2000}\z})
          raise Wrong, "--url must be a path of this application that begins with /, not #{path.inspect}"
        end
        raise Wrong, "--url: #{MOST_PATHS} paths at most" if (@paths |= [path]).size > MOST_PATHS
      end

      def header(line)
        unless line.match?(/\A[\w!#$%&'*+.^`|~-]+:[ \t]*[ -~\t]*\z/) && line.bytesize <= MOST_HEADER
          raise Wrong, "--header must be 'Name: value', not #{line.inspect}"
        end
        if line.match?(/\A(host|connection|content-length|transfer-encoding):/i)
          raise Wrong, "--header cannot set #{line[/\A[^:]+/]}"
        end
        raise Wrong, "--header: 32 fields at most" if (@headers << line).size > 32
      end
    end
  end
end
