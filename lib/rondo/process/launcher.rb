# frozen_string_literal: true

# From settings to a running server in this process and to its end: listens, serves, handles signals,
# restarts. With workers cluster.rb does that; what both do at boot is in process_setup.rb,
# boot/lines.rb, application.rb and binds.rb.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/application"
require "rondo/boot/inherited"
require "rondo/boot/lines"
require "rondo/boot/process_files"
require "rondo/boot/process_setup"
require "rondo/boot/ticket_keys"
require "rondo/certificates/reloading"
require "rondo/cluster/succession"
require "rondo/config/binds"
require "rondo/config/worker_count"
require "rondo/metrics/metrics"
require "rondo/process/control"
require "rondo/process/hooks"
require "rondo/process/watches"
require "rondo/process/serving"
require "rondo/process/signals"
require "rondo/process/systemd"
require "rondo/puma/launcher_view"
require "rondo/puma/library"
require "rondo/pubsub/configured"
require "rondo/pubsub/hub"

module Rondo
  # Runs one server in this process until it is told to stop.
  # @api private
  class Launcher
    # @return [Server]
    attr_reader :server
    # @return [Serving]
    attr_reader :serving
    # @return [Logger]
    attr_reader :log
    # @return [Scoreboard] one row: this process
    attr_reader :scoreboard

    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param debug [Boolean] shows backtraces of errors at boot
    # @param again [Hash] the {Inherited.command} that a restart repeats
    def initialize(settings, configuration, debug: false, again: Inherited.command)
      @settings = settings
      @configuration = configuration
      @debug = debug || settings[:debug]
      @again = again
      @restart = false
      @systemd = Systemd.new
    end

    # @return [Integer] exit code
    # @raise [Error] what cannot be served, in one line
    def run
      $stdout.sync = @settings[:mutate_stdout_and_stderr_to_sync_on_write]
      prepare
      @inherited = Inherited.extract # before the application may start something
      @tickets_before = TicketKeys.extract
      open_control
      show_signs_of_life
      @engine = PubSub::Configured.open(@settings, @log) # the application may publish while it is loaded
      make_server
      @serving = Serving.new(@server, @log, **@settings.stop_options) do |seconds|
        Hooks.new(@configuration, @log).try_within(seconds, :before_drain)
      end
      PumaLibrary.describe(@configuration, board: @scoreboard, server: @server, serving: @serving)
      listen
      @setup.name_process("rondo #{VERSION}", @server.addresses)
      @control&.watch(@server.descriptors)
      tell_of_certificates
      @files.write(@server.addresses.uniq, @control)
      signals = Signals.new(self, raise_on_term: @settings[:raise_exception_on_sigterm])
      serve(signals)
      finish(signals)
    ensure
      @plugins&.stop
      @fetched&.close
      @control&.close
      @files&.remove
    end

    # @return [Hash{String => Integer}] listening descriptors by URL
    def descriptors
      @server&.descriptors || {}
    end

    # For `rondo check`.
    # @return [String] the folder whose files are served
    def folder_only
      stand
      @settings.public_folder
    end

    # For `rondo check`.
    # @return [Array<String>] the files that a start would write: pid, state, output
    # @raise [ConfigurationError] it could not
    def written_only
      stand
      files = ProcessFiles.new(@settings[:pidfile], @settings[:state_path], Logger.new(silent: true))
      [*files.try, *@setup.try_redirect]
    end

    # Everything before listening, for `rondo check`.
    # @return [Server]
    def prepare_only
      @log = Logger.new(silent: true)
      stand
      @setup.export_environment
      @server = Server.new(load_app, **@settings.server_options(@log))
    end

    # Binds and closes again, for `rondo check`.
    # @return [Array<String>] URLs
    def listen_only
      listen
      urls = @server.addresses
      @fetched&.close
      @server.stop(force: true)
      @server.run
      urls
    end

    # Graceful the first time, at once the second time.
    # @return [void]
    def stop
      return drop_restart if @restart # the stop continues without it

      stop_serving unless give_notice { stop_serving(force: false) unless @serving.stopping? }
    end

    # From now on the server is not ready, and accepts connections for a while.
    # @yield on another thread, when that is over
    # @return [Boolean] false: it has done so before, or does not
    def give_notice(&over)
      seconds = @settings[:drain_delay]
      return false if seconds.zero? || @notice || @serving.stopping?

      @notice = Thread.new do
        sleep seconds
        over.call
      end
      @control&.leave
      @log.say Serving.notice(seconds)
      true
    end

    # At once, dropping what is in flight.
    # @return [void]
    def halt
      drop_restart
      stop_serving(force: true)
    end

    # The whole process again, by exec, with the same listening sockets.
    # @return [void]
    def restart
      return @restart || @log.say("- No restart: this server stops") if @notice || @serving.stopping?

      own = @server.descriptors.map { |url, number| [marked(url), number] }
      @handed_on = HandedOn.new([*own, *@fetched&.descriptors], @foreign)
      @systemd.restarting
      @server.keep_files
      @restart = true
      stop_serving
    end

    # @return [Boolean] whether standard output or error goes to a file that can be opened again
    def reopen_logs
      @setup.redirect(again: true)
    end

    # @return [Boolean] whether there are any
    def reload_certificates
      @certificates.request
    end

    # New certificates are no reason to stop, and a terminal that was closed is.
    # @return [Boolean] whether something was opened or read again, and the server goes on
    def hang_up
      reloads = reload_certificates
      reopen_logs || @setup.outlives_hang_up?(reloads) do
        Process.kill("HUP", Process.pid) unless @serving.stopping?
      end
    end

    # @return [String] for the log: where every Ruby thread is
    def thread_backtraces
      ProcessSetup.thread_backtraces
    end

    private

    def drop_restart
      @restart = false
      @handed_on&.give_up
    end

    def stop_serving(force: @serving.stopping?)
      @scoreboard.set(0, :state, Scoreboard::STATES.index(:draining))
      @control&.leave unless @restart
      @control&.unwatch
      @serving.stop(force: force, spread: !@restart) # nobody could come back before the restart
    end

    def prepare
      # These signals do nothing while the application is loaded. Programs that it starts must not ignore them, so they
      # get a handler that does nothing.
      Inherited::EARLY.each { |name| trap(name) {} } # rubocop:disable Lint/EmptyBlock
      stand
      @settings.find_folders # raises if one does not exist
      @setup.redirect
      @log = @settings.logger
      @setup.export_environment
      @setup.name_process("rondo #{VERSION}")
      @setup.look_ahead
      @files = ProcessFiles.new(@settings[:pidfile], @settings[:state_path], @log,
                                permission: @settings[:state_permission])
      @files.claim
      BootLines.new(@settings, @configuration, @log).single(WorkerCount.new(@settings))
    end

    def stand
      return if @setup

      @setup = ProcessSetup.new(@settings)
      @setup.go_to_directory
    end

    # ---- the control server ----

    # Before the application is loaded, which may take its time: probes are answered meanwhile.
    def open_control
      @scoreboard = ProcessSetup.make_scoreboard(1)
      { pid: Process.pid, started_ms: now_ms, state: Scoreboard::STATES.index(:booting) }.each do |name, value|
        @scoreboard.set(0, name, value)
      end
      @control = Control.open(@settings, @scoreboard, self, log: @log) or return
      PumaLibrary.note_control(@configuration, @control.url, @control.token)
      @log.say @control.line
    end

    def notify_ready
      { ready_ms: now_ms, state: Scoreboard::STATES.index(:ready) }.each { |name, value| @scoreboard.set(0, name, value) }
    end

    def now_ms
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :millisecond)
    end

    # ---- the application ----

    def load_app
      app, @apps = Application.load_all(@settings, @log, debug: @debug)
      Root.pass_on unless Rondo.autoload?(:Root)
      app
    end

    def start_plugins
      PumaLibrary.describe(@configuration, board: @scoreboard)
      return if @configuration.plugins.empty?

      @plugins = Plugins.for(@configuration, @log, self)
      @plugins.start
    end

    def make_server
      app = load_app
      start_plugins
      @server = Server.new(app, **@settings.server_options(@log), **Hooks.new(@configuration, @log).of_server,
                                scoreboard: @scoreboard, row: 0, tickets: keep_tickets)
      @metrics = Metrics.open(@settings, @scoreboard, @log)
    end

    # ---- listening ----

    def keep_tickets
      @tickets = TicketKeys.for([*Binds.wanted(@settings), *Binds.raw(@settings)], @tickets_before)
    end

    def listen
      @foreign = []
      @marked = []
      inherited = @inherited || Inherited.extract
      uris = Binds.uris(@settings, inherited, @log)
      @certificates = Certificates::Reloading.new(uris, @log) { |found| show_certificates(found) }
      @materials = {}
      uris.each do |uri|
        tls = inherited.read_tls(uri) { |line| @log.error line }
        @materials[tls[:name]] = tls if tls
        open_at(uri, inherited, tls)
      end
      @fetched = @setup.keep_certificates(inherited, @log) { @certificates.request }
      inherited.close_rest
    end

    def open_at(uri, inherited, tls)
      before = @server.descriptors.keys
      descriptors = inherited.descriptors_for(uri).flat_map { |number| [number, *inherited.siblings_of(number)] }
      descriptors.each { |number| adopt(number, inherited, uri, tls) }
      open_new(uri, tls) if descriptors.empty?
      @marked.concat(@server.descriptors.keys - before) if Address.app?(uri)
    end

    # What the next process is told of a listener.
    def marked(url)
      "#{Address::APP if @marked.include?(url)}#{url}"
    end

    def open_new(uri, tls)
      return @server.listen(uri, app_at(uri), tls: tls) unless Address.raw?(uri)

      @server.listen_raw(Address.without_mark(uri), Binds.maker(@settings, Address.key(uri)), tls: tls)
    end

    def adopt(number, inherited, uri, tls)
      own = inherited.own?(number)
      url = adopted(number, own, uri, tls)
      @foreign << "#{Address::APP if Address.app?(uri)}#{url}" unless own
    end

    # @return [#call, nil] nil: the address has that of the server
    def app_at(uri)
      @apps.fetch(Address.key(uri)) if Address.app?(uri)
    end

    # @return [String] URL of the listener
    def adopted(number, own, uri, tls)
      unless Address.raw?(uri)
        scheme = Address.scheme(uri)
        return @server.listen_fd(number, app_at(uri), owns_file: own, scheme: scheme, tls: tls)
      end

      maker = Binds.maker(@settings, Address.key(uri))
      Address::RAW + @server.listen_raw_fd(number, maker, owns_file: own, tls: tls)
    end

    def show_certificates(materials)
      shown = materials.map { |material| TLS.carry_over(material, @materials[material[:name]]) }
      @server.show_certificates(shown)
      shown.each { |material| @materials[material[:name]] = material }
      tell_of_certificates
    end

    def tell_of_certificates
      return if @server.certificates.empty?

      require "rondo/certificates/facts"
      Certificates::Facts.tell(@server.certificates, @log, @control)
    end

    # ---- running ----

    # The traps come first: a program that reads that the server listens may send it a signal.
    def serve(signals)
      signals.install
      notify_ready
      @server.addresses.uniq.each { |url| @log.say "* Listening on #{url}" }
      @fetched&.start
      watch_restart_file if @settings[:tmp_restart]
      watch_idle_time if @settings[:idle_timeout].positive?
      @certificates.start
      call_hooks(:after_booted)
      @plugins&.booted
      Succession.extract&.dismiss
      Hub.dismiss
      @systemd.ready
      @log.say "Use Ctrl-C to stop"
      @serving.run
    ensure
      signals.restore(except: @restart ? Inherited::EARLY : [])
    end

    # Before the application is loaded: after a restart systemd waits for them meanwhile, too. From a Ruby
    # thread: while the application keeps Ruby to itself there are none.
    def show_signs_of_life
      period = @systemd.watchdog_period or return
      Thread.new do
        loop do
          @systemd.sign_of_life
          sleep period
        end
      end
    end

    def finish(signals)
      @plugins&.stop(restart: (:exec if @restart))
      %i[after_stopped after_drain].each { |name| call_hooks(name) } unless @restart
      PubSub::Configured.close(@engine, @log)
      @metrics&.rest
      return exec_again if @restart

      @log.say "- Goodbye!"
      signals.raise_term if signals.term?
      0
    end

    def exec_again
      call_hooks(:before_restart, LauncherView.new(@configuration, @log, self))
      @log.say "- Restarting..."
      @files.remove
      @control&.hand_on
      @control&.close
      @fetched&.close
      tickets, kept = TicketKeys.hand_on(@tickets)
      command = Inherited.command_of_restart(@again, @settings[:restart_command])
      Inherited.exec_again(command, @handed_on.take, foreign: [*@foreign, *@fetched&.foreign],
                                                     redirects: [*@fetched&.redirects], keep: kept,
                                                     materials: @materials.values,
                                                     more: { **tickets, **@setup.environment_before })
    end

    def call_hooks(name, *arguments)
      Hooks.new(@configuration, @log).try(name, *arguments)
    end

    def watch_idle_time
      idle = IdleTime.new(@scoreboard, @settings[:idle_timeout])
      Thread.new do
        sleep [@settings[:idle_timeout], 1].min until idle.over?
        @log.say "- Idle timeout reached"
        stop
      end
    end

    def watch_restart_file
      file = RestartFile.new
      Thread.new do
        sleep 2 until file.touched?
        restart
      end
    end
  end
end
