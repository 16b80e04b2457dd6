# frozen_string_literal: true

# What the handlers for Rackup and Rack 2 share: options as those programs give them, the
# application's own configuration file, one server on this thread.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/config/settings"
require "rondo/config/configuration"
require "rondo/process/hooks"
require "rondo/boot/inherited"
require "rondo/pubsub/configured"
require "rondo/process/serving"
require "rondo/process/signals"
require "rondo/config/worker_count"

module Rondo
  # Extended by the modules that are registered.
  module Handler
    # The source of a value that was typed.
    TYPED = "options"
    # Settings of a process that belongs to the server. Here the process belongs to the program that called.
    OF_THE_COMMAND = %i[app rackup directory pidfile state_path control_url tag redirect_stdout redirect_stderr
                        raise_exception_on_sigterm tmp_restart].freeze

    # The object that signals act on.
    Run = Struct.new(:serving, :log) do
      # @return [void]
      def stop
        serving.stop
      end
    end
    private_constant :Run

    # Serves on this thread. On the main thread TERM, and INT where the program leaves that to Ruby, stop the
    # server as they do for the command.
    # @param app [#call]
    # @param options [Hash] :Host, :Port, :Config (for Rackup, where :config is the application),
    #   :config (for Rails), :Verbose, :Silent, :environment, :quiet, :early_hints, and
    #   :user_supplied_options, the names of those that were typed
    # @yieldparam server [Server]
    # @return [void]
    def run(app, **options)
      @signals = nil
      @stopped = false
      configuration = Configuration.new(configuration_path(options)).choose(false)
      settings = Settings::Resolved.new(typed(options), configuration.values,
                                        Settings.from_environment, offered(options))
      log = settings.logger(quiet: options[:quiet] || options[:Silent])
      say_boot(configuration, settings, log)
      engine = PubSub::Configured.open(settings, log)
      server = Server.new(app, **settings.server_options(log), **configuration.thread_hooks)
      serving = Serving.new(server, log, drain_ms: settings[:drain_timeout_ms])
      @signals = Signals.new(Run.new(serving, log))
      server.stop if @stopped
      listen(server, settings, log)
      yield server if block_given?
      serve(serving, Hooks.new(configuration, log))
    ensure
      PubSub::Configured.close(engine, log)
      end_by_signal
    end

    # Rackup calls this on INT, in its trap; without it the process would just exit. That may be before there is a
    # server. Graceful the first time, at once the second time.
    # @return [void]
    def shutdown
      @stopped = true
      @signals&.dispatch("INT")
    end

    # @return [Hash{String => String}]
    def valid_options
      { "Host=HOST" => "Hostname to listen on (default: all interfaces)",
        "Port=PORT" => "Port to listen on (default: #{Settings.default(:port)})",
        "Config=FILE" => "Configuration file (default: config/rondo.rb or config/puma.rb)",
        "Verbose" => "A line for each request on standard output",
        "Silent" => "No boot lines" }
    end

    private

    def say_boot(configuration, settings, log)
      log.say "Rondo #{VERSION} starting in single mode..."
      configuration.notes.each { |line| log.say "! #{line}" }
      say_without_workers(settings, log)
      say_what_is_left(configuration.values, log)
      log.say "* Serving files of #{settings.public_folder}" if settings.public_folder
    end

    def say_without_workers(settings, log)
      count = WorkerCount.new(settings)
      if count.cluster?
        log.say "! workers: #{count}: only the command `rondo` starts workers; this server " \
                "is one process"
      end
    end

    def say_what_is_left(values, log)
      left = values.slice(*OF_THE_COMMAND).reject { |_name, (value, _source)| value.nil? }
      return if left.empty?

      log.say "! #{left.keys.join(", ")} (#{left.values.first.last}): no effect, because only the command " \
              "`rondo` uses this"
    end

    # Rackup takes INT itself and leaves TERM to Ruby.
    def serve(serving, hooks)
      @signals.install_free(Thread.current == Thread.main ? %w[INT TERM] : [])
      hooks.try(:after_booted)
      serving.run
    ensure
      hooks.try(:after_stopped)
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
      found
    end

    def listen(server, settings, log)
      typed = %i[host port].any? { |name| settings.source(name) == TYPED }
      uris = [*(settings[:bind] || [])].map { |text| Address.uri(text, settings[:port]) }
      if typed && uris.any?
        log.say "! bind (#{settings.source(:bind)}): ignored, because the options of the program say where to listen"
        uris = []
      end
      uris = [Address.tcp_uri(settings[:host] || Address.any_host, settings[:port])] if uris.empty?
      uris.each { |uri| server.listen(uri) }
      (settings[:listen_raw] || {}).each { |uri, maker| server.listen_raw(uri, maker) }
      server.addresses.each { |url| log.say "* Listening on #{url}" }
    end
  end
end
