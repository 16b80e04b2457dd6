# frozen_string_literal: true

# From settings to a running server and to its end: loads the application, listens, says what it
# found and why, handles signals, restarts. Signals are in signals.rb, systemd and inherited
# sockets in inherited.rb, pid and state files in process_files.rb.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/control"
require "rondo/inherited"
require "rondo/process_files"
require "rondo/signals"

module Rondo
  # Runs one server in this process until it is told to stop.
  class Launcher
    # Seconds the application has after the core has given it up.
    GRACE = 1

    # @return [Server]
    attr_reader :server
    # @return [Logger]
    attr_reader :log
    # @return [Scoreboard] one slot: this process
    attr_reader :scoreboard

    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param debug [Boolean] shows backtraces of errors at boot
    # @param again [Hash] the {Inherited.command} that a restart repeats
    def initialize(settings, configuration, debug: false, again: Inherited.command)
      @settings = settings
      @configuration = configuration
      @debug = debug
      @again = again
      @restart = false
    end

    # @return [Integer] exit code
    # @raise [Error] what cannot be served, in one line
    def run
      $stdout.sync = true
      prepare
      open_control
      app = load_app
      @server = Server.new(app, **@settings.server_options(@log), **@configuration.thread_hooks,
                                scoreboard: @scoreboard, slot: 0)
      listen
      @control&.watch(@server.descriptors)
      @files.write(@server.addresses, @control)
      signals = Signals.new(self, raise_on_term: @settings[:raise_exception_on_sigterm])
      serve(signals)
      finish(signals)
    ensure
      @control&.close
      @files&.remove
    end

    # Everything before listening, for `rondo check`.
    # @return [Server]
    def prepare_only
      @log = Logger.new(silent: true)
      go_to_directory
      export_environment
      @server = Server.new(load_app, **@settings.server_options(@log))
    end

    # Binds and closes again, for `rondo check`.
    # @return [Array<String>] URLs
    def listen_only
      listen
      urls = @server.addresses
      @server.stop(force: true)
      @server.run
      urls
    end

    # Graceful the first time, at once the second time.
    # @return [void]
    def stop
      return @restart = false if @restart # the stop under way goes on, the restart does not

      stop_server
    end

    # At once, dropping what is in flight.
    # @return [void]
    def halt
      @restart = false
      @stopping = true
      stop_server
    end

    # The whole process again, by exec, with the same listening sockets.
    # @return [void]
    def restart
      return if @stopping

      Inherited.notify("RELOADING=1")
      # Held open across the stop, so that clients wait in the kernel's queue meanwhile.
      @handed_on = Inherited.hand_on(@server.descriptors)
      @server.keep_files
      @restart = true
      stop_server
    end

    # @return [Boolean] whether standard output or error goes to a file that can be opened again
    def reopen_logs
      redirect.any?
    end

    # @return [String] for the log: where every Ruby thread is
    def thread_backtraces
      Thread.list.map do |thread|
        ["Thread #{thread.inspect}", *thread.backtrace].join("\n    ")
      end.join("\n")
    end

    private

    def stop_server
      force = @stopping
      @stopping = true
      @scoreboard.set(0, :state, Scoreboard::STATES.index(:draining))
      @control&.unwatch
      @server.stop(force: force)
      end_application_after(force ? 0 : @settings[:drain_timeout_ms] / 1000.0)
    end

    # The core cannot end what the application itself does not finish: that thread is ended, which
    # runs its `ensure`, a moment after the core has dropped the rest.
    def end_application_after(seconds)
      Thread.new do
        sleep(seconds + GRACE)
        if (thread = @serving)
          @log.say "- Ended while the application was still at a request"
          thread.kill
        end
      end
    end

    def prepare
      go_to_directory
      redirect
      @log = @settings.logger
      export_environment
      @files = ProcessFiles.new(@settings[:pidfile], @settings[:state_path], @log)
      @files.claim
      say_what_was_found
    end

    def go_to_directory
      directory = @settings[:directory] or return
      Dir.chdir(directory)
    rescue SystemCallError
      raise ConfigurationError, "cannot go to the directory #{directory}"
    end

    def redirect
      mode = @settings[:redirect_append] ? "a" : "w"
      { redirect_stdout: $stdout, redirect_stderr: $stderr }.filter_map do |name, io|
        path = @settings[name] or next
        # Opened before it replaces the old one, which a failure has to be told on.
        File.open(path, mode) { |file| io.reopen(file) }
        io.sync = true
      rescue SystemCallError => e
        raise ConfigurationError, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
      end
    end

    def export_environment
      name = @settings[:environment].to_s
      ENV["RACK_ENV"] = name
      ENV["RAILS_ENV"] ||= name
      $PROGRAM_NAME = ["rondo #{VERSION}", @settings[:tag] && "[#{@settings[:tag]}]"].compact.join(" ")
    end

    def say_what_was_found
      @log.say "Rondo starting in single mode..."
      @log.say "* Rondo version: #{VERSION}"
      @log.say "*  Ruby version: #{RUBY_DESCRIPTION}"
      @log.say "*  Min threads: #{@settings[:min_threads]} (#{@settings.source(:min_threads)})"
      @log.say "*  Max threads: #{@settings[:max_threads]} (#{@settings.source(:max_threads)})"
      @log.say "*      Workers: 0 (#{@settings[:workers]} by #{@settings.source(:workers)})"
      @log.say "*  Environment: #{@settings[:environment]} (#{@settings.source(:environment)})"
      @log.say "*          PID: #{Process.pid}"
      @log.say "*       Config: #{@configuration.path || "none found"}"
      @configuration.notes.each { |line| @log.say "! #{line}" }
      note_unused
    end

    def note_unused
      { preload: "workers" }.each do |name, what|
        @log.say "! #{name}: this version does not have #{what}" if @settings.given?(name)
      end
    end

    # ---- the control server ----

    # Before the application is loaded, which may take its time: probes are answered meanwhile.
    def open_control
      @scoreboard = Scoreboard.new(1)
      { pid: Process.pid, started_ms: now_ms, state: Scoreboard::STATES.index(:booting) }.each do |name, value|
        @scoreboard.set(0, name, value)
      end
      @control = Control.open(@settings, @scoreboard, self, log: @log) or return
      @log.say "* Control server on #{@control.url}#{" without a token" unless @control.token}"
    end

    def tell_ready
      @scoreboard.set(0, :ready_ms, now_ms)
      @scoreboard.set(0, :state, Scoreboard::STATES.index(:ready))
    end

    def now_ms
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
    end

    # ---- the application ----

    def load_app
      return @settings[:app] if @settings.given?(:app)

      path = app_file
      @log.say "*          App: #{path} (#{@settings.source(:rackup)})"
      require "rack"
      require "rack/builder"
      app = Rack::Builder.parse_file(path)
      app.is_a?(Array) ? app.first : app
    rescue Error
      raise
    rescue SyntaxError => e
      fail_to_load(e, e.message.lines.first.to_s.chomp)
    rescue StandardError, LoadError, NotImplementedError => e
      fail_to_load(e, "#{place_of(e, path)}: #{e.message.lines.first.to_s.chomp} (#{e.class})")
    end

    def app_file
      wanted = @settings[:rackup]
      [wanted, "#{wanted}.ru"].find { |path| File.file?(path) } or
        raise ConfigurationError, "no application: #{wanted} does not exist in #{Dir.pwd}"
    end

    def place_of(error, path)
      at = Array(error.backtrace).find { |line| line.include?(File.basename(path.to_s)) }
      (at || error.backtrace&.first).to_s[/\A.*?:\d+/] || path
    end

    def fail_to_load(error, line)
      @log.error error.full_message(highlight: false) if @debug
      raise ConfigurationError, "the application cannot be loaded: #{line}"
    end

    # ---- listening ----

    def listen
      @foreign = []
      inherited = Inherited.take
      uris = wanted_uris
      uris = inherited.uris if uris.empty? && inherited.any?
      uris = [default_uri] if uris.empty?
      uris.each do |uri|
        descriptors = inherited.descriptors_for(uri)
        descriptors.each do |number|
          url = @server.listen_fd(number, owns_file: inherited.own?(number))
          @foreign << url unless inherited.own?(number)
        end
        @server.listen(uri) if descriptors.empty?
      end
      inherited.close_rest
    end

    # What was typed replaces what the file binds.
    def wanted_uris
      typed = %i[bind port].select { |name| @settings.source(name) == "command line" }
      return [*@settings[:bind]] if typed.empty?

      [*(@settings[:bind] if typed.include?(:bind)), *(default_uri if typed.include?(:port))]
    end

    def default_uri
      Address.tcp_uri(@settings[:host] || Address.any_host, @settings[:port])
    end

    # ---- running ----

    # Whoever reads that the server listens may send it a signal: the traps come first.
    def serve(signals)
      signals.install
      tell_ready
      @server.addresses.each { |url| @log.say "* Listening on #{url}" }
      watch_restart_file if @settings[:tmp_restart]
      call_hooks(:after_booted)
      Inherited.notify("READY=1")
      @log.say "Use Ctrl-C to stop"
      @serving = Thread.current
      @server.run
    ensure
      @serving = nil
      signals.restore
    end

    def finish(signals)
      call_hooks(:after_stopped) unless @restart
      return exec_again if @restart

      @log.say "- Goodbye!"
      signals.raise_term if signals.term?
      0
    end

    def exec_again
      call_hooks(:before_restart)
      @log.say "- Restarting..."
      @files.remove
      @control&.hand_on
      @control&.close
      Inherited.exec_again(@again, @handed_on, foreign: @foreign)
    end

    def call_hooks(name)
      @configuration.hooks[name].each(&:call)
    rescue StandardError => e
      @log.error "#{name}: #{e.full_message(highlight: false)}"
    end

    # Rails' `bin/rails restart` touches the file.
    def watch_restart_file
      path = File.expand_path("tmp/restart.txt")
      before = modified(path)
      Thread.new do
        loop do
          sleep 2
          next if modified(path) == before

          restart
          break
        end
      end
    end

    def modified(path)
      File.mtime(path)
    rescue SystemCallError
      nil
    end
  end
end
