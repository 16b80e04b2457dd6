# frozen_string_literal: true

# The commands `rondo node`, `up_node` and `up`. Their options are those of Up!; the process that serves reads them
# again (engine/options.js), because a build can be started without Ruby.
# SPDX-License-Identifier: MIT

require "optparse"
require "rondo/node/build"

module Rondo
  module Node
    # From the words of a command line to a process of Node.
    class CLI
      OPTIONS = [
        [:port, "-p", "--port PORT", "port to listen on (%s)"],
        [:bind, "-b", "--bind ADDRESS", "address to listen on (%s); also tcp://ADDRESS:PORT"],
        [:secure, "-s", "--secure", "TLS, with -c and -k; with -a clients have to show a certificate"],
        [:"ca-file", "-a", "--ca-file FILE", "certificates that sign those of clients"],
        [:"cert-file", "-c", "--cert-file FILE", "the server's certificate"],
        [:"key-file", "-k", "--key-file FILE", "the server's key"],
        [:"log-file", "-l", "--log-file FILE", "file for the log"],
        [:"pid-file", "-P", "--pid-file FILE", "file for the process id"],
        [:"early-hints", "--early-hints", "let the application send 103"],
        [:engine, "--engine NAME", %w[node uws], "what serves HTTP: node, or uws for uWebSockets.js (%s)"],
        [:"uws-file", "--uws-file FILE", "the uws.js of a uWebSockets.js that is installed already"],
        [:redis, "-r", "--redis URL", "Redis that carries published messages to other machines"],
        [:workers, "-w", "--workers NUMBER", "processes that serve; 0: one process without a master (%s)"],
        [:set, "--set NAME=VALUE", "one limit of the server; may be given several times"]
      ].freeze
      DEFAULTS = { bind: "every address", engine: "node" }.freeze
      private_constant :OPTIONS, :DEFAULTS

      # @param words [Array<String>]
      # @param name [String] the command, for messages
      # @param defaults [Hash{Symbol => String}] of options
      def initialize(words, name: "rondo node", defaults: { port: "9292" }, out: $stdout, err: $stderr)
        @words = words
        @name = name
        @defaults = defaults
        @values = defaults.dup
        @out = out
        @err = err
      end

      # Becomes the server; returns only without one.
      # @return [Integer] exit code: 0, 1 for what cannot be served, 2 for a wrong command line
      def run
        rest = parser.parse(@words)
        return 0 if @done
        raise OptionParser::InvalidArgument, "too many arguments: #{rest.join(" ")}" if rest.size > 1

        serve(file(rest.first))
      rescue OptionParser::ParseError => e
        complain(e.message.lines.first, 2)
      rescue Error => e
        complain(e.message, 1)
      rescue Interrupt
        130
      end

      private

      def serve(rackup)
        @out.sync = true
        node = Programs.node
        build = Build.new(rackup, out: @out)
        find_uws if @values[:engine] == "uws"
        return write(build) if @target

        exec(node, build.call, *server_words)
      end

      # npm fetches it the first time. Without it the server says that Node's own one serves.
      def find_uws
        @values[:"uws-file"] ||= Programs.uws(Cache.new)
      rescue Error => e
        raise if @target

        @values[:engine] = "node"
        @err.puts "#{@name}: uWebSockets.js cannot be installed (#{e.message}): Node's own HTTP server serves"
      end

      def write(build)
        main = build.write(@target, uws: @values[:"uws-file"])
        @out.puts "* Start it with: node #{main}#{" --engine uws" if @values[:engine] == "uws"}"
        0
      end

      def server_words
        @values.flat_map do |name, value|
          value == true ? ["--#{name}"] : Array(value).flat_map { |one| ["--#{name}", one.to_s] }
        end
      end

      def file(name)
        name ||= "config.ru"
        [name, "#{name}.ru"].find { |path| File.file?(path) } or raise Error, "there is no #{name}"
      end

      def parser
        OptionParser.new("Usage: #{@name} [options] [file]") do |options|
          options.require_exact = true
          OPTIONS.each do |name, *words, help|
            default = @defaults.fetch(name, DEFAULTS.fetch(name, "0"))
            options.on(*words, help.sub("%s", default)) { |value| set(name, value) }
          end
          options.on("--build DIR", "write the server to a folder, for `node DIR/#{Build::MAIN}`") { |path| @target = path }
          options.on("-v", "--version", "show the version") { finish("#{@name} #{VERSION}") }
          options.on("-h", "--help", "show this text") { finish(options.help) }
        end
      end

      def set(name, value)
        return bind(value) if name == :bind
        return (@values[:set] ||= []) << value if name == :set

        @values[name] = value
      end

      def bind(value)
        match = %r{\Atcp://(\[[^\]]*\]|[^:]*)(?::(\d+))?\z}.match(value)
        @values[:bind] = (match ? match[1] : value).delete("[]")
        @values[:port] = match[2] if match && match[2]
      end

      def finish(text)
        @out.puts text
        @done = true
      end

      def complain(line, code)
        @err.puts "#{@name}: #{line.lines.map(&:strip).join(" ")}"
        code
      end
    end
  end
end
