# frozen_string_literal: true

# The command line of the executable; `require "rondo"` never comes here. Puma's options, iodine's
# where Puma has none, and the subcommands init and check.
# SPDX-License-Identifier: MIT

require "optparse"
require "rondo/config/settings"
require "rondo/config/configuration"
require "rondo/config/worker_count"

module Rondo
  # Parses ARGV and does what it says.
  class CLI
    # A command line that cannot be understood: exit code 2.
    class UsageError < StandardError; end

    # iodine's spellings, which a POSIX parser would take apart.
    LONG_SHORT = { "-maxbd" => "--max-body", "-maxhd" => "--max-head", "-www" => "--public",
                   "-maxms" => "--max-message", "-ping" => "--ping", "-cert" => "--cert",
                   "-key" => "--key", "-tls" => "--tls" }.freeze
    NOT_YET = %w[--max-message --ping --cert --key --tls].freeze
    SUBCOMMANDS = %w[init check].freeze
    # Words that people try first; a file of that name comes before.
    TRIED = %w[start help version].freeze
    # Those with words of their own.
    TOOLS = { "ctl" => :Ctl, "top" => :Top }.freeze

    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    def initialize(arguments, out: $stdout, err: $stderr)
      @arguments = words_of(arguments)
      @out = out
      @err = err
      @values = {}
      @notes = []
      @debug = @arguments.include?("--debug")
    end

    # @return [Integer] exit code: 0, 1 for what cannot be served, 2 for a wrong command line
    def run
      take_mold
      return tool(@arguments.shift) if TOOLS.key?(@arguments.first)

      command = SUBCOMMANDS.include?(@arguments.first) ? @arguments.shift : "serve"
      parse
      return @done if @done

      public_send(command)
    rescue UsageError, OptionParser::ParseError => e
      complain(usage_line(e), 2)
    rescue Error => e
      complain(e.message, 1, e)
    rescue Interrupt
      130 # before the server took the signals over
    end

    # @return [Integer]
    def serve
      require "rondo/process/launcher"
      require "rondo/boot/first_process"
      ProcessTree.limit_arenas
      again = Inherited.command # before --dir is obeyed
      return Mold.new(@mold, settings, configuration, debug: @debug).run if @mold

      FirstProcess.stand_apart if FirstProcess.needed?
      count = WorkerCount.new(settings)
      return Launcher.new(settings, configuration, debug: @debug, again: again).run unless count.cluster?

      require "rondo/cluster"
      Cluster.new(settings, configuration, count, again: again).run
    end

    # @return [Integer]
    def init
      require "rondo/config/init_file"
      InitFile.write(@file || "config/rondo.rb", force: @force, out: @out)
    end

    # @return [Integer]
    def check
      require "rondo/command/check"
      Check.new(settings, configuration, debug: @debug, out: @out).run
    end

    private

    def tool(word)
      require "rondo/command/#{word}"
      Rondo.const_get(TOOLS[word]).new(@arguments, out: @out, err: @err).run
    end

    def file?(word)
      [word, "#{word}.ru"].any? { |path| File.exist?(path) }
    end

    # Whether a master started this process to fork workers from it.
    def take_mold
      return unless ENV.key?("RONDO_MOLD")

      require "rondo/cluster/mold"
      @mold = Mold.take
    end

    # "--name=value" becomes two words: with `require_exact` older optparse knows only that form.
    def words_of(arguments)
      words = arguments.map { |word| word.valid_encoding? ? word : word.b } # a path may be anything
      words.flat_map { |word| word.match(/\A(--[a-z-]+)=(.*)\z/m)&.captures || [LONG_SHORT.fetch(word, word)] }
    end

    def configuration
      @configuration ||= Configuration.new(configuration_path).tap { |file| file.notes.concat(@notes) }
    end

    def settings
      @settings ||= begin
        configuration.choose(WorkerCount.new(resolve).cluster?)
        resolve
      end
    end

    def resolve
      Settings::Resolved.new(@values, configuration.values, Settings.from_environment)
    end

    def configuration_path
      Dir.chdir(@values[:directory].first) if @values[:directory]
      return nil if @config == "-"
      return @config if @config

      Configuration.find(Settings.environment(@values))
    rescue SystemCallError
      raise ConfigurationError, "cannot go to the directory #{@values[:directory].first}"
    end

    def parse
      missing = @arguments.find { |word| NOT_YET.include?(word[/\A[^=]*/]) }
      raise UsageError, "#{missing} is not in this version" if missing

      rest = parser.parse(@arguments)
      try(rest.shift) if TRIED.include?(rest.first) && !file?(rest.first)
      raise UsageError, "too many arguments: #{rest.join(" ")}" if rest.size > 1

      @file = rest.first
      set(:rackup, @file) if @file
    end

    def try(word)
      case word
      when "help" then done(parser.help)
      when "version" then done(version)
      end
    end

    def set(name, value)
      @values[name] = [value, "command line"]
    end

    def core(name, value)
      row = Settings::CORE.fetch(name)
      number = Settings.bytes(value)
      unless number.between?(row[:min], row[:max])
        raise UsageError, "#{name} #{value} is not between #{row[:min]} and #{row[:max]} #{row[:unit]}"
      end

      set(name, number)
    rescue ArgumentError
      raise UsageError, "#{value.inspect} is no size; use a number with k, m or g"
    end

    def parser
      OptionParser.new do |options|
        options.banner = "Usage: rondo [options] [file]     rondo init | check | ctl | top [options]"
        options.require_exact = true
        addresses(options)
        processes(options)
        limits(options)
        logs(options)
        puma_only(options)
        others(options)
      end
    end

    def addresses(options)
      options.separator "\nWhere:"
      options.on("-b", "--bind URI", "tcp://HOST:PORT, unix:///PATH; may be repeated") do |uri|
        set(:bind, [*@values[:bind]&.first, uri])
      end
      options.on("-p", "--port PORT", "port on all interfaces (#{Settings.default(:port)})") do |port|
        unless port.match?(/\A\d{1,5}\z/) && port.to_i <= 65_535
          raise UsageError, "port must be a number up to 65535, not #{port.inspect}"
        end

        set(:port, port.to_i)
      end
      options.on("-C", "--config FILE", "configuration file; - for none") { |path| @config = path }
      options.on("--no-config", "no configuration file") { @config = "-" }
      options.on("-e", "--environment NAME", Settings.default(:environment)) { |name| set(:environment, name) }
      options.on("--public DIR", "serve its files, also -www; without an application only them") do |path|
        set(:public, path)
      end
      options.on("--x-sendfile-root DIR", "where X-Sendfile may find files; may be repeated") do |path|
        set(:x_sendfile_root, [*@values[:x_sendfile_root]&.first, path])
      end
      options.on("--dir DIR", "go there first") { |path| set(:directory, File.expand_path(path)) }
      options.on("-I", "--include PATHS", "add to the load path") do |paths|
        $LOAD_PATH.unshift(*paths.split(":"))
      end
    end

    def processes(options)
      options.separator "\nProcesses:"
      options.on("-t", "--threads MIN:MAX", "application threads") { |text| threads(text) }
      options.on("-w", "--workers N", "worker processes; auto: one a CPU (#{Settings.default(:workers)})") do |count|
        raise UsageError, "workers must be a number or auto, not #{count.inspect}" unless
          count.match?(/\A(\d{1,4}|auto)\z/)

        set(:workers, count == "auto" ? count : count.to_i)
      end
      options.on("--preload", "load the application before forking (the default)") { set(:preload, true) }
      options.on("--pidfile FILE", "write the process id there") { |path| set(:pidfile, path) }
      options.on("-S", "--state FILE", "write pid and addresses there") { |path| set(:state_path, path) }
      options.on("--tag NAME", "name in the process list") { |name| set(:tag, name) }
      options.on("--plugin NAME", "tmp_restart; others are not loaded") { |name| plugin(name) }
      options.on("--control-url URI", "control server: tcp://, unix://, auto") { |uri| set(:control_url, uri) }
      options.on("--control-token TOKEN", "its token; none for none") { |token| set(:control_token, token) }
      options.on("-r", "--redis URL", "pub/sub between machines") { |url| set(:redis_url, url) }
    end

    # Options of Puma that start scripts have, which change nothing here.
    PUMA_ONLY = { ["-f", "--fork-worker [N]"] => Configuration::Verbs::BUILT_IN[:fork_worker],
                  ["--idle-timeout SECONDS"] => "not in this version",
                  ["--bind-to-activated-sockets [only]"] => "sockets handed over by systemd are always taken",
                  ["-R", "--restart-cmd COMMAND"] => "a restart runs the words that started this process",
                  ["--prune-bundler"] => "Rondo never needs that",
                  ["--extra-runtime-dependencies NAMES"] => "Rondo never needs that" }.freeze

    def puma_only(options)
      options.separator "\nAccepted because Puma has them, with a line at boot:"
      PUMA_ONLY.each do |words, why|
        options.on(*words) { @notes << "#{words.last[/\A\S+/]}: #{why}" }
      end
    end

    def limits(options)
      options.separator "\nLimits:"
      options.on("--max-body SIZE", "request body, also -maxbd (#{Settings.default(:max_body_bytes)})") do |size|
        core(:max_body_bytes, size)
      end
      options.on("--max-head SIZE", "request head, also -maxhd (#{Settings.default(:max_head_bytes)})") do |size|
        core(:max_head_bytes, size)
      end
      idle = "idle connections (#{Settings.default(:keep_alive_timeout_ms)})"
      options.on("-k", "--keep-alive SECONDS", idle) do |seconds|
        raise UsageError, "#{seconds.inspect} are no seconds" unless seconds.match?(/\A\d+(\.\d+)?\z/)

        core(:keep_alive_timeout_ms, (seconds.to_f * 1000).round)
      end
      options.on("--early-hints", "offer rack.early_hints") { set(:early_hints, 1) }
    end

    def logs(options)
      options.separator "\nLogs:"
      options.on("-v", "--log-requests", "a line a request on standard output") { set(:log_requests, true) }
      options.on("-q", "--quiet", "no boot lines") { set(:quiet, true) }
      options.on("-s", "--silent", "nothing but errors") { set(:silent, true) }
      options.on("--redirect-stdout FILE", "standard output to a file") { |path| set(:redirect_stdout, path) }
      options.on("--redirect-stderr FILE", "standard error to a file") { |path| set(:redirect_stderr, path) }
      options.on("--redirect-append", "add to those files") { set(:redirect_append, true) }
      options.on("--no-redirect-append", "empty those files first") { set(:redirect_append, false) }
      options.on("--debug", "backtraces of errors at boot") { @debug = true }
    end

    def others(options)
      options.separator "\nOthers:"
      options.on("--force", "with init: overwrite the file") { @force = true }
      options.on("-V", "--version", "version and what it was built with") { done(version) }
      options.on("-h", "--help", "this text") { done(options.help) }
    end

    def plugin(name)
      return set(:tmp_restart, true) if name == "tmp_restart"

      @notes << "--plugin #{name}: Puma's plugins are not loaded; start it beside the server"
    end

    def threads(text)
      match = /\A(?:(\d+):)?(\d+)\z/.match(text) or
        raise UsageError, "threads must be N or MIN:MAX, not #{text.inspect}"
      high = match[2].to_i
      raise UsageError, "threads #{text}: the minimum is above the maximum" if match[1].to_i > high
      raise UsageError, "threads must be at least 1" if high.zero?

      core(:min_threads, (match[1] || high).to_i.clamp(1, high))
      core(:max_threads, high)
    end

    def done(text)
      @out.puts text
      @done = 0
    end

    def version
      core = Server.new(->(_env) {})
      "rondo #{VERSION} (#{RUBY_DESCRIPTION}; #{core.poller}; without TLS and HTTP/2)"
    end

    def usage_line(error)
      return error.message unless error.is_a?(OptionParser::ParseError)

      word = error.args.first.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")
      return error.message unless error.is_a?(OptionParser::InvalidOption)

      "invalid option #{word}#{Server.nearest(word[/\A[^=]*/], flags)}"
    end

    def flags
      parser.top.list.grep(OptionParser::Switch).flat_map(&:long) + LONG_SHORT.keys
    end

    def complain(line, code, error = nil)
      line = line.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")
      return @mold.channel.tell(:failed, message: line) ? code : 1 if @mold

      @err.puts "rondo: #{Logger.escape(line.lines.map(&:chomp).join(" "))}"
      @err.puts error.full_message(highlight: false) if @debug && error&.backtrace&.any?
      code
    end
  end
end
