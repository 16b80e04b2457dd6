# frozen_string_literal: true

# The command line of the executable; `require "rondo"` never comes here. Puma's options, iodine's
# where Puma has none, and the subcommands: init, check and cert here, ctl, top, publish and bench in classes of their
# own.
# SPDX-License-Identifier: MIT

require "rondo/command/command_line"
require "rondo/config/settings"
require "rondo/config/configuration"
require "rondo/config/worker_count"

module Rondo
  # Parses ARGV and does what it says.
  # @api private
  class CLI
    # A command line that cannot be understood: exit code 2.
    class UsageError < StandardError; end

    # Rows with an option: of settings of the shell, and of the core.
    OPTIONS = Settings::SHELL.merge(Settings::CORE_NAMES).select { |_, row| row.flag }.freeze
    # iodine's spellings, which a POSIX parser would take apart.
    IODINE = /\A-[a-z]{2}/
    LONG_SHORT = OPTIONS.values.map { |row| row.forms.map { |form| form[/\A\S+/] } }
                        .flat_map { |words| words.grep(IODINE).map { |word| [word, words.grep(/\A--/).first] } }.to_h
                        .merge("-maxms" => "--max-message", "-ping" => "--ping").freeze
    NOT_YET = %w[--max-message --ping].freeze
    # iodine's, too. Everybody on the machine can read a command line.
    PASSWORDS = %w[-tls-pass -tls-password --tls-pass --tls-password].freeze
    SUBCOMMANDS = %w[init check cert].freeze
    # Words that people try first; a file of that name comes before.
    TRIED = %w[start server help version].freeze
    # Parts of the help, each made by the method of that name.
    GROUPS = %i[addresses processes limits certificates logs puma_only others].freeze
    # Those with words of their own.
    TOOLS = { "ctl" => :Ctl, "top" => :Top, "publish" => :Publish, "bench" => :Bench,
              "completion" => :Completion }.freeze

    # @param arguments [Array<String>]
    # @param out [IO]
    # @param err [IO]
    def initialize(arguments, out: $stdout, err: $stderr)
      @arguments = words_of(arguments)
      @out = out
      @err = err
      @values = {}
      @notes = []
      @plugins = []
      @debug = @arguments.include?("--debug")
    end

    # @return [Integer] exit code: 0, 1 for what cannot be served, 2 for a wrong command line
    def run
      find_mold
      find_help
      return tool(@arguments.shift) if TOOLS.key?(@arguments.first)

      command = SUBCOMMANDS.include?(@arguments.first) ? @arguments.shift : "serve"
      find_verb if command == "cert"
      @full = !@arguments.delete("--full").nil? if command == "init"
      parse unless @done
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
      Rondo.taken = true
      again = Inherited.command # before --dir is obeyed
      return Mold.new(@mold, settings, configuration, debug: @debug).run if @mold

      FirstProcess.stand_apart if FirstProcess.needed?
      count = WorkerCount.new(settings)
      return Launcher.new(settings, configuration, debug: @debug, again: again).run unless count.cluster?

      require "rondo/cluster"
      Cluster.new(settings, configuration, count, again: again).run
    end

    # @return [Array<String, OptionParser::Switch>] headings and options of `rondo --help`, in its order
    def option_list
      parser.top.list
    end

    # @return [Integer]
    def init
      require "rondo/config/init_file"
      InitFile.write(@file || "config/rondo.rb", force: @force, full: @full, out: @out)
    end

    # @return [Integer]
    def check
      require "rondo/command/check"
      Check.new(settings, configuration, debug: @debug, out: @out).run
    end

    # @return [Integer]
    def cert
      Cert.new(@verb, settings, out: @out).run(force: @force, print: @print)
    end

    private

    # `rondo help bench` is `rondo bench --help`.
    def find_help
      return if @arguments.first != "help" || @arguments.size < 2 || file?("help")

      word = @arguments[1]
      raise UsageError, "too many arguments: #{@arguments.drop(2).join(" ")}" if @arguments.size > 2
      return @arguments.shift if word.start_with?("-")

      require "rondo/boot/application"
      commands = Application::COMMANDS
      raise UsageError, "there is no command #{word}#{Server.nearest(word, commands)}" unless commands.include?(word)

      @arguments = [word, "--help"]
    end

    def find_verb
      require "rondo/command/cert"
      return done(cert_help) if @arguments.empty? || @arguments.first.match?(/\A(-h|--help|help)\z/)

      @verb = Cert.verb(@arguments.shift)
    end

    def tool(word)
      require "rondo/command/#{word}"
      Rondo.const_get(TOOLS[word]).new(@arguments, out: @out, err: @err).run
    end

    def file?(word)
      [word, "#{word}.ru"].any? { |path| File.exist?(path) }
    end

    # Whether a master started this process to fork workers from it.
    def find_mold
      return unless ENV.key?("RONDO_MOLD")

      require "rondo/cluster/mold"
      @mold = Mold.extract
    end

    # "--name=value" becomes two words: with `require_exact` older optparse knows only that form.
    def words_of(arguments)
      words = arguments.map { |word| word.valid_encoding? ? word : word.b } # a path may be anything
      words.flat_map { |word| word.match(/\A(--[a-z-]+)=(.*)\z/m)&.captures || [LONG_SHORT.fetch(word, word)] }
    end

    def configuration
      @configuration ||= begin
        file = Configuration.new(configuration_path, above: @values, plugins: @plugins)
        file.notes.concat(@notes)
        file
      end
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
      if @arguments.any? { |word| PASSWORDS.include?(word[/\A[^=]*/]) }
        raise UsageError, "others can read a password there: use key_password_command in an ssl:// address"
      end

      rest = parser.parse(@arguments)
      try(rest.shift) if TRIED.include?(rest.first) && !file?(rest.first)
      raise UsageError, "too many arguments: #{rest.join(" ")}" if rest.size > 1

      @file = rest.first
      set(:rackup, @file) if @file
    end

    def try(word)
      case word
      when "help" then done(help)
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
      raise UsageError, "#{name} must be #{Settings::SIZE_FORMS}, not #{value.inspect}"
    end

    def parser(groups = GROUPS)
      OptionParser.new do |options|
        options.banner = "Usage: rondo [options] [file] or " \
                         "init|check|cert|ctl|top|publish|bench|completion|node|help|version"
        options.require_exact = true
        groups.each { |group| send(group, options) }
      end
    end

    # It fits a screen, because `rondo cert --help` shows the options of certificates.
    def help
      parser(GROUPS - %i[certificates]).help
    end

    def cert_help
      Cert.help + OptionParser.new { |options| certificates(options) }.summarize.join
    end

    # The options of one group that set a setting.
    def settings_of(options, group)
      OPTIONS.each do |name, row|
        next unless row.group == group

        forms = row.forms.grep_v(IODINE)
        options.on(*forms, row.help.sub("%s", Settings.default(name))) { |word| option(name, row, word) }
        next unless row.is_a?(Settings::Row) && row.negation

        options.on(forms.last.sub("--", "--no-"), row.negation) { set(name, false) }
      end
    end

    def option(name, row, word)
      return core_option(name, word) if Settings::CORE.key?(name)

      set(name, Settings::KINDS.fetch(row.kind).word(row, word, @values[name]&.first))
    rescue Settings::Kind::Refused => e
      raise UsageError, "#{name} #{e.message}"
    end

    def core_option(name, word)
      case Settings::CORE.fetch(name)[:unit]
      when "bool" then set(name, 1)
      when "ms"
        core(name, milliseconds(name, word))
      when "bytes" then core(name, word)
      else
        raise UsageError, "#{name} must be a number, not #{word.inspect}" unless word.match?(/\A\d+\z/)

        core(name, word.to_i)
      end
    end

    def milliseconds(name, word)
      (Settings.seconds(word) * 1000).round
    rescue ArgumentError
      raise UsageError, "#{name} must be #{Settings::TIME_FORMS}, not #{word.inspect}"
    end

    def addresses(options)
      options.separator "\nWhere:"
      settings_of(options, :where)
      options.on("--bind-to-activated-sockets [only]") do |which| # its name says what it does
        unless [nil, "only"].include?(which)
          raise UsageError, "--bind-to-activated-sockets has no value, or only, not #{which.inspect}"
        end
        set(:bind_to_activated_sockets, which ? :only : :besides)
      end
      options.on("-C", "--config FILE", "configuration file; - for none") { |path| @config = path }
      options.on("--no-config", "no configuration file") { @config = "-" }
      options.on("-I", "--include PATHS", "folders for the load path, separated by colons") do |paths|
        $LOAD_PATH.unshift(*paths.split(":"))
      end
    end

    def processes(options)
      options.separator "\nProcesses:"
      options.on("-t", "--threads MIN:MAX", "application threads") { |text| threads(text) }
      settings_of(options, :processes)
      options.on("-f", "--fork-worker [N]", "replace workers once, after N requests of the first (1000)") do |count|
        fork_worker(count || "1000")
      end
      options.on("--plugin NAME", "load a plugin of Puma, or tmp_restart") { |name| plugin(name) }
      options.on("-R", "--restart-cmd COMMAND", "what a restart executes") { |command| restart_command(command) }
    end

    def fork_worker(word)
      option(:refork_after, Settings::SHELL[:refork_after], word)
      set(:preload, true)
    end

    def restart_command(command)
      return set(:restart_command, command) unless Settings.puma?(command)

      @notes << "--restart-cmd: #{Configuration::Verbs::NOT_PUMA} (#{command})"
    end

    # Options of Puma that start scripts have, which change nothing here.
    PUMA_ONLY = { ["--prune-bundler"] => "Rondo never needs that",
                  ["--extra-runtime-dependencies NAMES"] => "Rondo never needs that" }.freeze

    def puma_only(options)
      options.separator "\nOptions of Puma that have no effect; each logs a line at boot:"
      PUMA_ONLY.each do |words, why|
        options.on(*words) { @notes << "#{words.last[/\A\S+/]}: #{why}" }
      end
    end

    def limits(options)
      options.separator "\nLimits:"
      settings_of(options, :limits)
    end

    def certificates(options)
      options.separator "\nCertificates:"
      settings_of(options, :certificates)
      options.on("--print", "trust: only print the commands") { @print = true }
    end

    def logs(options)
      options.separator "\nLogs:"
      settings_of(options, :logs)
      options.on("--debug", "show backtraces of errors at boot") { @debug = true }
    end

    def others(options)
      options.separator "\nOthers:"
      options.on("--force", "overwrite the file (init), fetch what is good (cert renew)") { @force = true }
      options.on("-V", "--version", "show the version and what it was built with") { done(version) }
      options.on("-h", "--help", "show this text") { done(help) }
    end

    def plugin(name)
      return set(:tmp_restart, true) if name == "tmp_restart"

      @plugins << name
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
      libraries = "#{TLS.library || "without TLS"}; #{Server::Core.http2_library || "without HTTP/2"}"
      "rondo #{VERSION} (#{RUBY_DESCRIPTION}; #{Server.new(->(_env) {}).poller}; #{libraries})"
    end

    def usage_line(error)
      return error.message unless error.is_a?(OptionParser::ParseError)

      CommandLine.wrong(error, parser, LONG_SHORT.keys + (@full.nil? ? [] : %w[--full]))
    end

    def complain(line, code, error = nil)
      line = line.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")
      return @mold.socket.notify(:failed, message: line) ? code : 1 if @mold

      @err.puts "rondo: #{Logger.escape(line.lines.map(&:chomp).join(" "))}"
      @err.puts error.full_message(highlight: false) if @debug && error&.backtrace&.any?
      code
    end
  end
end
