# frozen_string_literal: true

# What the handlers for Rackup and Rack 2 share: options as those programs give them, and the application's own
# configuration file. The server is that of Rondo.start (process/program.rb); it is only an object on this thread where
# the program wants that, has called from another thread, or runs in the background by itself.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/config/settings"
require "rondo/config/configuration"
require "rondo/process/hooks"
require "rondo/boot/application"
require "rondo/boot/inherited"
require "rondo/boot/lines"
require "rondo/puma/library"
require "rondo/pubsub/configured"
require "rondo/process/serving"
require "rondo/process/signals"
require "rondo/config/worker_count"

module Rondo
  # Extended by the modules that are registered.
  module Handler
    # The source of a value that was typed.
    # @api private
    TYPED = "options"
    # Settings of a process that belongs to the server. They have no effect where it belongs to the program that called.
    # @api private
    OF_THE_COMMAND = %i[app rackup directory pidfile state_path control_url tag redirect_stdout redirect_stderr
                        raise_exception_on_sigterm tmp_restart drain_delay].freeze

    # Behind the name of the pid file of the program, for a mold.
    # @api private
    OF_MOLD = ".mold"
    # The reason in a log line.
    # @api private
    IGNORED = "ignored, because the options of the program say where to listen"

    # The object that signals act on, and plugins.
    Run = Struct.new(:serving, :log) do
      # @return [Boolean] never: there is no control server that says so
      def give_notice
        false
      end

      # @return [void]
      def stop
        serving.stop
      end

      # @return [void]
      def halt
        serving.stop(force: true)
      end

      # @return [void]
      def restart
        log.say "! a plugin asks for a restart: the process is not the server's, so the program has to restart it"
      end

      # @return [Hash{String => Integer}] listening sockets by URL
      def descriptors
        serving.server.descriptors
      end
    end
    private_constant :Run

    # Serves as {Rondo.start} does: with workers this process is the master, and signals, restarts and all settings are
    # those of the command. If the program wants a {Server}, has called from another thread, or runs in the background
    # by itself, this is one server on this thread; on the main thread TERM, and INT where the program leaves that to
    # Ruby, stop it.
    # @param app [#call]
    # @param options [Hash] :Host, :Port, :Threads, :Config (for Rackup, where :config is the application),
    #   :config (for Rails), :Verbose, :Silent, :environment, :quiet, :early_hints, :pid, and
    #   :user_supplied_options, the names of those that were typed
    # @yieldparam server [Server]
    # @return [void]
    # @raise [Error] one line: what cannot be served
    def run(app, **options)
      @signals = nil
      @stopped = false
      configuration = Configuration.new(configuration_path(options), above: typed(options), port_host: options[:Host])
      why = why_one_process(options, block_given?)
      return run_program(app, configuration, options) unless why

      run_here(app, configuration, options, why) { |server| yield server if block_given? }
    end

    # Rackup calls this on INT, in its trap, while no server has that signal; without it the process would just exit.
    # That may be before there is a server. Graceful the first time, at once the second time.
    # @return [void]
    # @raise [SystemExit] the server is that of {Rondo.start}
    def shutdown
      exit if @of_program
      @stopped = true
      @signals&.dispatch("INT")
    end

    # What `rackup --help` shows.
    # @return [Hash{String => String}] options and what they mean
    def valid_options
      { "Host=HOST" => "Hostname to listen on (default: all interfaces)",
        "Port=PORT" => "Port to listen on (default: #{Settings.default(:port)})",
        "Threads=MIN:MAX" => "Application threads (default: #{default_threads})",
        "Config=FILE" => "Configuration file (default: config/rondo.rb or config/puma.rb)",
        "Verbose" => "A line for each request on standard output",
        "Silent" => "No boot lines" }
    end

    private

    def default_threads
      %i[min_threads max_threads].map { |name| Settings.default(name) }.join(":")
    end

    def resolve(configuration, options, *before)
      Settings::Resolved.new(*before, typed(options), configuration.values, Settings.from_environment, offered(options))
    end

    # @return [String, nil] why the server is an object on this thread
    def why_one_process(options, wants_server)
      return "the program asks for the server object" if wants_server
      return "this is not the main thread" unless Thread.current == Thread.main

      "the program runs in the background by itself" if options[:daemonize]
    end

    # ---- as the command ----

    # As {Rondo.start}: restarts, and later molds, are the program executed anew.
    def run_program(app, configuration, options)
      require "rondo/process/program"
      @of_program = true
      pid = options[:pid]
      remove_mold_pidfile(pid) if pid && ENV.key?("RONDO_MOLD")
      Program.begin_with do
        Program.new(configuration, command: Inherited.command, molds: command_of_molds(pid)) do
          above = layer(app, resolve(configuration, options), configuration, options)
          resolve(configuration, options, above)
        end
      end
    ensure
      @of_program = nil
    end

    # The program has chosen the folder already.
    def layer(app, settings, configuration, options)
      layer = { app: [app, TYPED], directory: [nil, TYPED] }
      layer[:pidfile] = [options[:pid].delete_suffix(OF_MOLD), TYPED] if options[:pid]
      layer[:quiet] = [true, TYPED] if options[:quiet] || options[:Silent]
      return layer unless typed_address?(settings)

      note = "bind (#{settings.source(:bind)}): #{IGNORED}"
      configuration.notes << note if [*(settings[:bind] || [])].any? && !configuration.notes.include?(note)
      layer.merge(bind: [[default_address(settings)], TYPED])
    end

    # The program checks a pid file when it starts, and its file is that of the master.
    def command_of_molds(pid)
      command = Inherited.command
      pid ? { **command, words: [*command[:words], "-P", "#{pid}#{OF_MOLD}"] } : command
    end

    # The next mold must not find it.
    def remove_mold_pidfile(pid)
      File.delete(pid) if pid.end_with?(OF_MOLD) && File.read(pid).to_i == Process.pid
    rescue SystemCallError
      nil # it is not there
    end

    # ---- on this thread ----

    def run_here(app, configuration, options, why)
      settings = resolve(configuration.choose(false), options)
      log = settings.logger(quiet: options[:quiet] || options[:Silent])
      say_boot(configuration, settings, log, why)
      Signed.secrets = settings[:signing_secret] if settings.given?(:signing_secret)
      engine = PubSub::Configured.open(settings, log)
      hooks = Hooks.new(configuration, log)
      server = Server.new(Application.with_puma_env(app, settings), **settings.server_options(log), **hooks.of_server)
      serving = Serving.new(server, log, **settings.stop_options) do |seconds|
        hooks.try_within(seconds, :before_drain)
      end
      run = Run.new(serving, log)
      @signals = Signals.new(run)
      server.stop if @stopped
      plugins = start_plugins(configuration, run)
      listen(server, settings, log)
      yield server
      serve(serving, hooks, plugins)
    ensure
      plugins&.stop
      PumaLibrary.forget(server)
      PubSub::Configured.close(engine, log)
      end_by_signal
    end

    def say_boot(configuration, settings, log, why)
      log.say "Rondo #{VERSION} starting in single mode..."
      configuration.notes.each { |line| log.say "! #{line}" }
      say_without_workers(settings, log, why)
      say_what_is_left(configuration.values, log)
      BootLines.new(settings, configuration, log).fibers
      log.say "* Serving files of #{settings.public_folder}" if settings.public_folder
    end

    def say_without_workers(settings, log, why)
      count = WorkerCount.new(settings)
      log.say "! workers: #{count}: this server is one process, because #{why}" if count.cluster?
    end

    def say_what_is_left(values, log)
      left = values.slice(*OF_THE_COMMAND).reject { |_name, (value, _source)| value.nil? }
      return if left.empty?

      log.say "! #{left.keys.join(", ")} (#{left.values.first.last}): no effect: the process is not the server's"
    end

    # The program has loaded the application.
    def start_plugins(configuration, run)
      PumaLibrary.offer
      PumaLibrary.describe(configuration, server: run.serving.server, serving: run.serving)
      Plugins.for(configuration, run.log, run)&.tap(&:start) if configuration.plugins.any?
    end

    # Rackup takes INT itself and leaves TERM to Ruby.
    def serve(serving, hooks, plugins)
      @signals.install_free(Thread.current == Thread.main ? %w[INT TERM] : [])
      hooks.try(:after_booted)
      plugins&.booted
      serving.run
    ensure
      plugins&.stop
      %i[after_stopped after_drain].each { |name| hooks.try(name) }
      @signals.restore
    end

    # Everything is closed by then.
    def end_by_signal
      signals = @signals
      @signals = nil
      signals.raise_term if signals&.term?
    end

    def configuration_path(options)
      path = options[:Config] || options[:config]
      return path if path && !%w[- config.ru].include?(path) && !path.end_with?(".ru")
      return nil if path == "-"

      Configuration.find(Settings.environment(typed(options), offered(options)))
    end

    # Typed options win over the file; the program's own defaults do not. Rackup does not say which are typed. Its
    # environment is always there, and counts as the RACK_ENV that it becomes.
    def typed(options)
      names = options[:user_supplied_options]
      names ? values(options.slice(*names)) : values(options.except(:environment))
    end

    def offered(options)
      values(options, "default of the program")
    end

    def values(options, source = TYPED)
      host, port = options.values_at(:Host, :Port)
      found = {}
      found[:early_hints] = [1, source] if options[:early_hints]
      found[:log_requests] = [true, source] if options[:Verbose]
      found[:environment] = [options[:environment], source] if options[:environment]
      found[:host] = [host, source] if host
      found[:port] = [Integer(port.to_s, 10), source] if port
      found.merge(threads(options[:Threads], source))
    end

    def threads(text, source)
      low, high = text.to_s.split(":", 2).map { |number| Integer(number, 10) }
      return {} unless low

      { min_threads: [[low, 1].max, source], max_threads: [high || low, source] }
    rescue ArgumentError
      raise ConfigurationError, "Threads must be N or MIN:MAX, not #{text.inspect}"
    end

    def typed_address?(settings)
      %i[host port].any? { |name| settings.source(name) == TYPED }
    end

    # The host may also be the path of a Unix socket, or an address with TLS, as for Puma.
    def default_address(settings)
      host = settings[:host] || Address.any_host
      return "unix://#{host}" if host.start_with?(".", "/", "@")
      return Address.tcp_uri(host, settings[:port]) unless host.include?("://")

      place, query = host.split("?", 2)
      place += ":#{settings[:port]}" unless place.start_with?("unix:") || place.match?(/:\d+\z/)
      [place, query].compact.join("?")
    end

    def listen(server, settings, log)
      uris = [*(settings[:bind] || [])].map { |text| Address.uri(text, settings[:port]) }
      if typed_address?(settings) && uris.any?
        log.say "! bind (#{settings.source(:bind)}): #{IGNORED}"
        uris = []
      end
      uris = [default_address(settings)] if uris.empty?
      uris.each { |uri| server.listen(uri) }
      Application.load_others(settings, log).each { |uri, app| server.listen(uri, app) }
      (settings[:listen_raw] || {}).each { |uri, maker| server.listen_raw(uri, maker) }
      server.addresses.each { |url| log.say "* Listening on #{url}" }
    end
  end
end
