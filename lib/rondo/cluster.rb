# frozen_string_literal: true

# The master of a cluster: it never loads the application. It keeps the sockets, starts molds
# (generations.rb) and lets them fork workers (supervisor.rb), handles signals, restarts itself and
# reaps its children. All of that runs on one thread and one loop (process_loop.rb); requests of other
# threads are posted to it.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/config/binds"
require "rondo/boot/lines"
require "rondo/boot/ticket_keys"
require "rondo/certificates/reloading"
require "rondo/cluster/status"
require "rondo/metrics/metrics"
require "rondo/process/control"
require "rondo/cluster/generations"
require "rondo/process/hooks"
require "rondo/pubsub/cluster_engine"
require "rondo/pubsub/hub"
require "rondo/boot/inherited"
require "rondo/boot/process_files"
require "rondo/process/process_loop"
require "rondo/boot/process_setup"
require "rondo/process/watches"
require "rondo/cluster/requests"
require "rondo/cluster/restarts"
require "rondo/cluster/slots"
require "rondo/cluster/succession"
require "rondo/cluster/supervisor"
require "rondo/process/systemd"
require "rondo/puma/cluster_plugins"
require "rondo/cluster/worker"
require "rondo/config/worker_count"

module Rondo
  # Runs workers until it is told to stop.
  # @api private
  class Cluster
    include Requests
    include Restarts
    include ClusterPlugins

    SIGNALS = %w[INT TERM QUIT HUP USR1 USR2 TTIN TTOU INFO PWR URG].freeze
    # Slots there is room for: so many times the number at boot, but at least this many.
    GROWTH = 2
    LEAST_ROOM = 16

    # @return [Settings::Resolved]
    attr_reader :settings
    # @return [Logger]
    attr_reader :log
    # @return [ProcessLoop]
    attr_reader :loop
    # @return [Slots]
    attr_reader :slots
    # @return [Scoreboard]
    attr_reader :board
    # @return [Hub]
    attr_reader :hub

    # @return [ClusterEngine, nil] what carries published messages further
    attr_reader :engine
    # @return [Metrics::Sender, nil]
    attr_reader :metrics
    # @return [TLS::Tickets, nil] nil where nothing is encrypted
    attr_reader :tickets
    # @return [Certificates::Keeping, nil] if certificates are fetched
    attr_reader :fetched
    # @return [Supervisor]
    attr_reader :supervisor
    # @return [Generations]
    attr_reader :generations

    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param count [WorkerCount]
    # @param again [Hash] the {Inherited.command} that molds and restarts repeat
    # @param first [#call, nil] forks the first mold, where the application is loaded already
    # @param root [Root, nil] blocks of a program that run in this process
    # @param successor [#call, nil] gets the new mold, and returns the command of the master that takes over with it,
    #   where that is not `again`
    def initialize(settings, configuration, count, again: Inherited.command, first: nil, root: nil, successor: nil)
      @settings = settings
      @configuration = configuration
      @count = count
      @again = again
      @first = first
      @root = root
      @successor = successor
      @stopping = false
    end

    # @return [Integer] exit code
    # @raise [Error] what cannot be served, in one line
    def run
      prepare
      @inherited = Inherited.extract # before there are children
      @tickets_before = TicketKeys.extract
      trap_signals
      begin_serving
      @loop.post { reap } # children that an earlier master has left
      @loop.run_until { ended? }
      finish
    ensure
      @metrics&.rest
      end_everybody
      @fetched&.close
      @engine&.close
      @root&.close
      PubSub.hub = nil
      @hub&.close
      @control&.close
      @files&.remove
    end

    # @return [Boolean] whether orphans of the molds become our children
    def reaper?
      @reaper
    end

    # ---- what generations and supervisor say ----

    # @return [void]
    def reconcile
      listen unless @listening
      @supervisor.reconcile unless @stopping
    end

    # Every slot is served by the newest code. May be called more than once.
    # @return [void]
    def reconciled
      return if @reconciled

      @reconciled = true
      @generations.reconciled
      note_refork
      @systemd.notify("READY=1")
      phased_restart_now if @restart_again
    end

    # The new generation cannot be used; the one before it keeps serving.
    # @return [void]
    def generation_failed
      @systemd.notify("READY=1")
      phased_restart_now if @restart_again
    end

    # There is no other generation that could serve.
    # @param reason [String]
    # @return [void]
    def cannot_start(reason)
      @failure ||= reason
      stop_now(force: true) unless @stopping
    end

    # @param worker [WorkerHandle] it has said how many requests it has answered
    # @return [void]
    def worker_alive(worker)
      refork_when_due(worker)
    end

    # @param message [MessageSocket::Message]
    # @return [void]
    def not_forked(message)
      @supervisor.not_forked(message)
    end

    # @return [Boolean]
    def stopping? = @stopping

    # @param worker [WorkerHandle]
    # @return [void]
    def worker_ended(worker)
      @reconciled = false unless @stopping
      status = worker.process_status or return
      @hooks.try(:after_worker_exit, worker)
      facts = { index: worker.index, pid: worker.pid, status: status.to_i, phase: worker.mold.generation,
                age: worker.age.round }
      @generations.call_hook(worker.mold, "after_worker_shutdown", **facts)
    end

    private

    # ---- boot ----

    def prepare
      $stdout.sync = @settings[:mutate_stdout_and_stderr_to_sync_on_write]
      @setup = ProcessSetup.new(@settings)
      @setup.go_to_directory
      @settings.find_folders # raises if one does not exist
      @setup.redirect
      @log = @settings.logger
      @hooks = Hooks.new(@configuration, @log)
      @setup.export_environment
      @setup.name_process("rondo #{VERSION}")
      @setup.look_ahead unless Succession.pending? # the workers that run keep serving
      @files = ProcessFiles.new(@settings[:pidfile], @settings[:state_path], @log,
                                permission: @settings[:state_permission])
      @files.claim
      @reaper = ProcessTree.set_subreaper
      BootLines.new(@settings, @configuration, @log).cluster(@count)
      mold = @first&.call # before there are threads
      make_parts
      @generations.begin_with(mold) if mold
      @root&.start(@hub, @log, @settings[:max_tasks]) { @loop.post { reap } }
    end

    def make_parts
      room = (@count.number * GROWTH).clamp(LEAST_ROOM, WorkerCount::MOST)
      @loop = ProcessLoop.new(@log)
      @slots = Slots.new(@settings, room: room)
      @board = ProcessSetup.make_scoreboard(room * 2)
      @hub = Hub.new(@settings, @board, log: @log)
      PubSub.hub = @hub
      @engine = ClusterEngine.open(self)
      @systemd = Systemd.new
      @generations = Generations.new(self, @again)
      @supervisor = Supervisor.new(self)
      @supervisor.generations = @generations
      open_control
      @metrics = Metrics.open(@settings, @board, @log, room: @slots.room)
    end

    # Rows i and i + room of the board are of one slot: see Seats.
    def open_control
      @control = Control.open(@settings, @board, self, log: @log, cluster: true, room: @slots.room) or return
      @log.say @control.line
    end

    def watch_queues
      @slots.show_queues(@control) if @control
    end

    # Nothing listens before the application is loaded, unless it did in an earlier life.
    def begin_serving
      @succession = Succession.extract
      if @succession
        @generations.adopt(@succession.current, @succession.previous)
        @succession.workers.each { |worker| @supervisor.adopt(worker) }
        listen
      elsif !@first
        @log.say "* Preloading application" if @settings[:preload]
        @generations.advance
      end
    end

    def listen
      uris = Binds.uris(@settings, @inherited, @log)
      @certificates = Certificates::Reloading.new(uris, @log) { |found| @loop.post { show_certificates(found) } }
      uris.each { |uri| @slots.listen(uri, @inherited, @count.number) { |line| @log.error line } }
      @tickets = TicketKeys.for(@slots.urls, @tickets_before)
      @fetched = @setup.keep_certificates(@inherited, @log) { @certificates.request }
      @inherited.close_rest
      @listening = true
      write_files
      watch_queues
      tell_of_certificates
      @setup.name_process("rondo #{VERSION}", @slots.urls)
      @slots.urls.each { |url| @log.say "* Listening on #{url}" }
      @fetched&.start
      @log.say "Use Ctrl-C to stop"
      start_timers
      @supervisor.start(@count.number)
    rescue Error, SystemCallError => e
      cannot_start(e.message)
    end

    def tell_of_certificates
      return if @slots.certificates.empty?

      require "rondo/certificates/facts"
      Certificates::Facts.tell(@slots.certificates, @log, @control)
    end

    # A full disk must not end workers that serve.
    def write_files
      @files.write(@slots.urls, @control)
    rescue Error => e
      raise unless @supervisor.workers.any?

      @log.error "! #{e.message}"
    end

    def start_timers
      @certificates.start
      @loop.every(60) { @tickets.renew } if @tickets
      period = @systemd.watchdog_period
      @loop.every(period) { @systemd.sign_of_life } if period
      @loop.every(1) { @systemd.notify("STATUS=#{ClusterStatus.line(self)}") } if @systemd.wanted?
      stop_when_idle if @settings[:idle_timeout].positive?
      return unless @settings[:tmp_restart]

      file = RestartFile.new
      @loop.every(2) { restart_now if file.touched? }
    end

    def stop_when_idle
      idle = IdleTime.new(@board, @settings[:idle_timeout])
      @loop.every(1) do
        next if @stopping || !idle.over?

        @log.say "- Idle timeout reached"
        stop_now
      end
    end

    # ---- signals ----

    def trap_signals
      @loop.on_signals(SIGNALS - (ENV["PUMA_SKIP_SIGUSR2"] ? ["USR2"] : [])) { |name| signal(name) }
      @loop.on_signals(["CLD"]) { reap }
    end

    def signal(name)
      case name
      when "INT", "QUIT" then stop_now
      when "TERM"
        @term = true
        stop_now
      when "HUP" then hang_up
      when "USR1" then phased_restart_now
      when "USR2" then restart_now
      when "URG" then refork_now
      when "TTIN" then grow
      when "TTOU" then shrink
      else @log.error(thread_backtraces)
      end
    end

    # New certificates are no reason to stop, and a terminal that was closed is.
    def hang_up
      reloads = @certificates&.request
      reopen || @setup.outlives_hang_up?(reloads) { @loop.post { stop_now unless @stopping } } || stop_now
    end

    def show_certificates(materials)
      @slots.show_certificates(materials)
      @supervisor.show_certificates
      tell_of_certificates
    end

    def reopen
      return false unless @setup.redirect(again: true)

      @generations.notify_all(:reopen)
      @supervisor.notify_all(:reopen)
      true
    end

    def grow
      return if refuse?("worker was added") || !@listening

      @reconciled = false
      @supervisor.grow or @log.say "! No worker was added: there is room for #{@slots.room} workers"
      watch_queues
    rescue AddressError => e
      @log.error "! #{e.message}"
    end

    def shrink
      return if refuse?("worker was ended") || !@listening

      @reconciled = false
      @supervisor.shrink or @log.say "! No worker was ended: it is the last one"
      watch_queues
    end

    # ---- the end ----

    def stop_now(force: @stopping)
      return if !force && give_notice

      unless @stopping
        @log.say "- Gracefully shutting down workers..." if @listening
        @systemd.notify("STOPPING=1")
      end
      @log.say "- Stopping at once" if force && @stopping
      @hooks.try_within(force ? 0 : Serving::GRACE, :before_drain) unless @stopping
      @stopping = true
      @control&.leave
      # From here on the kernel refuses connections that no worker has accepted.
      @control&.unwatch
      @slots.close_all
      @fetched&.close
      @generations.stop(force: force)
      @supervisor.stop(force: force)
    end

    def ended?
      @stopping && @supervisor.workers.empty? && @generations.all_ended?
    end

    def finish
      raise ConfigurationError, @failure if @failure

      @hooks.try(:after_drain)
      @log.say "- Goodbye!"
      @files.remove
      @loop.restore_signals
      raise SignalException, "SIGTERM" if @term && @settings[:raise_exception_on_sigterm]

      0
    end

    # Also runs when an unexpected error ends the master.
    def end_everybody
      @generations&.stop
      @supervisor&.workers&.each(&:kill)
    end

    # A child may have sent its pid while the end of another one was handled.
    def reap
      while (pid, status = wait_for_child)
        @supervisor.receive_from_all
        @supervisor.ended(pid, status) || @generations.ended(pid, status)
      end
    rescue Errno::ECHILD
      nil
    ensure
      restore_files
    end

    # A block of the program waits for its own children; nobody knows which these are. They are reaped when it is over.
    def wait_for_child
      return wait_for_any_child unless @root

      @root.unless_busy { return wait_for_any_child }
      [*@supervisor.workers.filter_map(&:pid), *@generations.pids].each do |pid|
        found = Process.wait2(pid, Process::WNOHANG)
        return found if found
      rescue Errno::ECHILD
        next # a worker is not ours before its parent has ended
      end
      nil
    end

    def wait_for_any_child
      Process.wait2(-1, Process::WNOHANG)
    end

    def restore_files
      @files.restore unless @stopping
    rescue Error => e
      @log.error "! #{e.message}"
    end
  end
end
