# frozen_string_literal: true

# A worker: one process that serves. The mold forks it (mold.rb). Over a socket (worker_handle.rb) it
# notifies the master that it is ready and that it is alive, and the master notifies it when to stop. It
# ends when the master does.
# SPDX-License-Identifier: MIT

require "rondo/boot/application"
require "rondo/boot/listener_opener"
require "rondo/boot/process_setup"
require "rondo/cluster/lifetimes"
require "rondo/cluster/message_socket"
require "rondo/config/binds"
require "rondo/process/hooks"
require "rondo/process/serving"

module Rondo
  # Boots, serves, stops.
  # @api private
  class Worker
    # How long the orphan waits for its new parent, in seconds.
    ADOPTION = 5
    # Comes when the master dies, and from nobody else. The first thread of the master that dies raises it, while its
    # process and its sockets may still be there.
    ALONE = Signal.list.fetch("URG")

    # @param request [MessageSocket::Message] of the master: index (of the slot), seat (its row of the scoreboard),
    #   seats (rows there are), outboxes (number of them), generation, master (pid), schemes (of its listeners),
    #   secrets (1: their certificates and keys come along, as the last descriptor), tickets (1: so do the keys of
    #   tickets, behind the listeners), edition (the name of those certificates), and descriptors: the worker's end of
    #   the message socket, the scoreboard, its inbox, its socket to the hub, the inboxes of all slots by number, its
    #   listeners
    # @param app [#call, nil] what was loaded before the fork, if anything was
    # @param apps [Hash{String => #call}, nil] of {Application.load_all}, then
    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param setup [ProcessSetup]
    # @param log [Logger]
    # @param debug [Boolean]
    def initialize(request, app:, apps:, settings:, configuration:, setup:, log:, debug: false)
      @request = request
      @index = request.number(:index)
      @app = app
      @apps = apps
      @settings = settings
      @configuration = configuration
      @hooks = Hooks.new(configuration, log)
      @setup = setup
      @log = log
      @log.worker = @index
      PubSub.log = @log
      @debug = debug || settings[:debug]
      @certificates = []
      @edition = request[:edition]
      @lock = Mutex.new
      adopt_descriptors(request.ios)
    end

    # Serves until stopped, then returns.
    # @return [void]
    def run
      join_cluster
      boot
      serve
      @hooks.try(:before_worker_shutdown, @index)
      @serving.server.finish_link
    rescue Error => e
      @socket.notify(:failed, message: e.message)
      exit 1
    end

    private

    def adopt_descriptors(ios)
      socket, @board, @inbox, @link, *rest = ios.each { |io| io.autoclose = false }
      @socket = MessageSocket.new(socket)
      @outboxes = rest.shift(@request.number(:outboxes))
      @secrets = secrets_among(rest, @request)
      @tickets = tickets_of(rest.pop) if @request.number(:tickets) == 1
      @listeners = rest
    end

    def tickets_of(io)
      TLS::Tickets.open(io.fileno)
    ensure
      io.close
    end

    # ---- start ----

    def join_cluster
      name = "rondo: cluster worker #{@index}: #{@request.number(:master)}"
      @setup.name_process(name)
      @socket.notify(:hello, pid: Process.pid)
      trap_signals
      wait_for_adoption
      ProcessTree.set_parent_death_signal(ALONE)
      ProcessTree.end_with(@socket.fileno, ALONE, drain_ms + ((Serving::GRACE + Lifetimes::LAST_GRACE) * 1000))
      Thread.new { obey }
      srand
    end

    def wait_for_adoption
      limit = ProcessLoop.now + ADOPTION
      sleep 0.001 until Process.ppid == @request.number(:master) || ProcessLoop.now > limit
    end

    # Ctrl-C goes to the whole group of processes: the master answers it.
    def trap_signals
      trap(ALONE) { (@is_alone = true) && Thread.new { stop } }
      trap_term
      trap("HUP") { Thread.new { reopen_logs } }
      (%w[INT USR1 USR2 TTIN TTOU] & Signal.list.keys).each { |name| trap(name) {} } # rubocop:disable Lint/EmptyBlock
      %w[CLD QUIT].each { |name| trap(name, "DEFAULT") }
      log_backtraces = proc { Thread.new { @log.error backtraces } }
      (%w[INFO PWR] & Signal.list.keys).each { |name| trap(name, &log_backtraces) }
    end

    # What the application forks has it as it had before, and says nothing to the master.
    def trap_term
      worker = Process.pid
      trap("TERM") do
        next ProcessSetup.end_by("TERM") unless Process.pid == worker

        kind = @termed ? :leaves : :term
        @termed = true
        Thread.new { ask_to_leave(kind) }
      end
    end

    # The first time the master decides: it may have got the signal, too, or it has another worker ready first. Who
    # sends it again does not wait for that.
    def ask_to_leave(kind)
      stop unless @socket.notify(kind) && kind == :term
    end

    def boot
      @hooks.call(:before_worker_boot, @index)
      PubSub.default = PubSub::MASTER if @request.number(:engine) == 1 && PubSub.default.equal?(PubSub::CLUSTER)
      @app, @apps = Application.load_all(@settings, @log, debug: @debug) unless @settings[:preload]
      options = @settings.server_options(@log).merge(shared_options, @hooks.of_server,
                                                     drain_timeout_ms: drain_ms)
      server = Server.new(@app, **options)
      each_socket(@listeners, @request[:schemes], @secrets) { |io, scheme, tls| listen(server, io, scheme, tls) }
      @lock.synchronize do
        @serving = Serving.new(server, @log, **@settings.stop_options, drain_ms: drain_ms) do |seconds|
          begin_drain(seconds)
        end
        show_newest
      end
      PumaLibrary.describe(@configuration, board: @scoreboard, cluster: true, server: server, serving: @serving)
    end

    # The parts that the processes of a cluster share and the server uses.
    def shared_options
      seats = @request.number(:seats)
      @scoreboard = Scoreboard.new(seats, @board.fileno)
      @log.note_in(@scoreboard)
      { scoreboard: @scoreboard, row: @request.number(:seat), inbox: @inbox.fileno,
        link: @link.fileno, tickets: @tickets, inboxes: (@outboxes.map(&:fileno) * 2).first(seats) }.slice(*Server::OPTIONS)
    end

    # Shorter than the time after which the master kills the worker.
    def drain_ms
      [@settings[:drain_timeout_ms], (@settings[:worker_shutdown_timeout] * 1000).round].min
    end

    # ---- serving ----

    def serve
      @socket.notify(:ready)
      Thread.new { check_in }
      @serving.run
    end

    def check_in
      loop do
        sleep [@settings[:worker_check_interval], 1].max
        break unless give_sign_of_life
      end
    end

    # With the name of the certificates that it has got: if that is not the newest, the master sends them again.
    def give_sign_of_life
      @socket.notify(:alive, requests: @serving.server.stats[:requests], edition: @edition)
    end

    # Handles messages of the master; when the socket is closed, the master is gone.
    def obey
      while (message = @socket.receive)
        carry_out(message)
      end
      @is_alone = true
      stop
    end

    # A message lacks the descriptors for which this process had no room. Whatever fails: the next one may be a stop.
    def carry_out(message)
      message.check
      case message.kind
      when :stop then stop(tells: !message[:ends].nil?)
      when :halt then stop(force: true)
      when :cover then cover(message)
      when :heirs then name_heirs(message)
      when :retire then retire(message[:sockets].split.map(&:to_i))
      when :certificates then certificates(message)
      when :confirmed then PubSub.confirms.resolve_all(message[:answers])
      when :reopen then reopen_logs
      when :backtraces then @log.error backtraces
      end
    rescue StandardError => e
      @log.error "! Message of the master (#{message.kind}): #{e.message}"
    end

    # The sockets of a slot that has no worker for a while. A newer master may have some that this version does not
    # know: they wait for their own worker. What is not served is closed, or the kernel would go on queueing
    # connections there for a worker that never accepts them.
    def cover(message)
      secrets = secrets_among(message.ios, message)
      return message.ios.each(&:close) if @serving.stopping?

      each_socket(message.ios, message[:schemes], secrets) do |io, scheme, tls|
        listen(@serving.server, io, scheme, tls)
        io.autoclose = false # it is the server's now, and close would not close it any more
      rescue AddressError => e
        io.close
        @log.error "! Not accepting connections for another worker: #{e.message}"
      end
    end

    # They may come before there is a server.
    def certificates(message)
      @lock.synchronize do
        @certificates.concat(TLS.take(message.ios.first || raise(IOError, "its descriptor is missing")))
        @edition = message[:edition]
        show_newest if @serving
      end
    end

    def show_newest
      found, @certificates = @certificates, [] # what cannot be shown must not come before all that follow
      @serving.server.show_certificates(found)
    rescue AddressError => e
      @log.error "! Showing the certificates of before: #{e.message}"
    end

    # @return [Array<TLS::Material, nil>] by listener; their descriptor is the last one, and is closed
    def secrets_among(ios, message)
      message.number(:secrets) == 1 ? TLS.take(ios.pop) : []
    end

    # @param schemes [String, nil] of {Slots#schemes}, in the order of the sockets; a master of an earlier version
    #   names none, and has only plain ones
    # @param secrets [Array<TLS::Material, nil>] in the same order
    def each_socket(ios, schemes, secrets)
      ios.zip(schemes.to_s.split, secrets) { |io, scheme, tls| yield io, scheme || "http", tls }
    end

    # The master of a raw listener may have read another configuration than this process. If this one does not name
    # the listener, its clients are told at once, by the end of their connections, and none waits in its queue.
    def listen(server, io, scheme, tls)
      kind, key = Address.read_word(scheme)
      return server.listen_fd(io.fileno, app_at(key), scheme: kind, tls: tls) unless kind == "raw"

      maker = Binds.maker(@settings, key)
      server.listen_raw_fd(io.fileno, maker || -> {}, tls: tls)
      @log.error "! Closing all connections to raw #{key}: the configuration file has no listen_raw for it" unless maker
    end

    # @return [#call, nil] nil: the address has that of the server
    def app_at(key)
      return unless key

      @apps.fetch(key) do
        @log.error "! Answering all requests at #{key} with 503: the configuration has no application for it any more"
        @apps[key] = ListenerOpener::NOBODY
      end
    end

    # The sockets of a slot that ends, if this worker listens there.
    def retire(inodes)
      inodes.each { |inode| @serving&.server&.retire(inode) }
    end

    # The master has been replaced by another program, whose workers take over the connections. If they cannot read
    # what this version sends, the connections are closed.
    def name_heirs(message)
      @heirs = message.ios.each { |io| io.autoclose = false }
      return unless message.number(:version) == Server::Core::HANDOVER_VERSION && @serving

      board, *inboxes = @heirs
      seats = message.number(:seats)
      @serving.server.name_heirs(Scoreboard.new(seats, board.fileno), (inboxes.map(&:fileno) * 2).first(seats))
    rescue SystemCallError => e
      @log.error "! Closing connections instead of handing them over: #{e.message}"
    end

    def stop(force: false, tells: false)
      return exit!(0) unless @serving
      return if @serving.stopping? && !force

      @serving.say_what_is_left("Worker #{@index} (PID: #{Process.pid})") if tells

      @serving.stop(force: force, whole: tells)
    end

    def begin_drain(seconds)
      @hooks.try_within(seconds, [*(:after_master_loss if @is_alone), :before_worker_drain], @index)
    end

    def reopen_logs
      @setup.redirect(again: true)
    rescue Error => e
      @log.error "! #{e.message}"
    end

    def backtraces
      ProcessSetup.thread_backtraces("Worker #{@index} (PID: #{Process.pid}):")
    end
  end
end
