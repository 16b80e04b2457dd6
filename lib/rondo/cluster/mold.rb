# frozen_string_literal: true

# The mold: a process that has loaded the application once and is forked for every worker of its
# generation. It serves no client and runs no threads of Rondo. Started by the master (mold_handle.rb) with
# the server's own command line, so that it reads code, configuration and Gemfile.lock again.
# SPDX-License-Identifier: MIT

require "rondo/boot/application"
require "rondo/boot/fork_safety"
require "rondo/boot/process_setup"
require "rondo/cluster/message_socket"
require "rondo/cluster/mold_handle"
require "rondo/cluster/worker"
require "rondo/process/hooks"
require "rondo/puma/children"
require "rondo/puma/launcher_view"
require "rondo/puma/library"

module Rondo
  # Loads the application, forks workers when the master asks for one.
  # @api private
  class Mold
    # What plugins may ask of the server: the master does it.
    MasterProxy = Struct.new(:socket, :urls) do
      %i[stop halt restart phased_restart].each do |verb|
        define_method(verb) { socket.notify(:asks, verb: verb) }
      end

      # @return [Hash{String => nil}] addresses, when the server has booted; the master has the sockets
      def descriptors
        (urls || []).to_h { |url| [url, nil] }
      end
    end
    # Hooks that it calls when the master says so.
    ON_REQUEST = %i[before_restart after_worker_shutdown before_refork after_refork after_stopped].freeze
    # A hook may take this part of worker_shutdown_timeout.
    PART = 3.0
    # Seconds that a hook may take when one before has not returned in time.
    IMPATIENT = 1
    # Signals that a plugin sends to its own process to stop the server. TERM may also come from who ends all processes
    # of the server, one by one.
    STOPPING = %w[INT TERM].freeze

    # What a mold gets from the master.
    Link = Struct.new(:socket, :generation, :master, :protocol, :introduced, keyword_init: true)

    # @param env [Hash] the variable is removed, so that children do not take it too
    # @return [Link, nil] nil in any process that is not a mold
    def self.extract(env = ENV)
      protocol, descriptor, generation, master, introduced = env.delete(MoldHandle::VARIABLE)&.split(":")&.map(&:to_i)
      descriptor && Link.new(socket: MessageSocket.adopt(descriptor), generation: generation, master: master,
                             protocol: protocol, introduced: introduced)
    end

    # @param link [Link]
    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param debug [Boolean]
    # @param program [String, nil] settings of a program that began the server, which the master gets
    def initialize(link, settings, configuration, debug: false, program: nil)
      @link = link
      @settings = settings
      @configuration = configuration
      @debug = debug || settings[:debug]
      @program = program
      @socket = link.socket
    end

    # @return [Integer] exit code
    # @raise [Error] the application cannot be served, in one line
    def run
      $stdout.sync = @settings[:mutate_stdout_and_stderr_to_sync_on_write]
      check_protocol
      ProcessTree.set_parent_death_signal(Signal.list["KILL"])
      ignore_signals
      prepare
      load_app
      say_ready
      serve_master
      end_plugins
      call_last_hook
      end_children
      0
    end

    private

    # The settings may be more than a message has room for.
    def say_ready
      file = @program && IO.for_fd(TLS.seal(@program))
      @socket.notify(:ready, ios: [file].compact, threads: @thread_note, plugins: @plugins ? 1 : 0,
                             hooks: hooks_on_request.join(","),
                             alone: @plugins&.alone&.join(","), children: children_of_plugins)
    rescue SystemCallError => e
      raise Error, "cannot hand on the settings of the program: #{e.message}"
    ensure
      file&.close
    end

    def check_protocol
      return if @link.protocol == MoldHandle::PROTOCOL

      raise Error,
            "this version cannot fork workers for a master of another version; stop the server and start it again"
    end

    # The master handles signals that are sent to the whole process group.
    def ignore_signals
      (%w[INT HUP USR1 USR2 TTIN TTOU PWR INFO] & Signal.list.keys).each do |name|
        trap(name) {} # rubocop:disable Lint/EmptyBlock -- what it starts shall not ignore the signal
      rescue ArgumentError
        next
      end
    end

    def prepare
      @setup = ProcessSetup.new(@settings)
      @setup.go_to_directory
      @settings.find_folders # raises if one does not exist
      FiberCount.of(@settings).check
      PubSub.log = @log = @settings.logger
      @hooks = Hooks.new(@configuration, @log)
      @setup.export_environment
      @setup.name_process("rondo: mold #{@link.generation}: #{@link.master}")
    end

    def load_app
      @app, @apps = Application.load_all(@settings, @log, debug: @debug) if @settings[:preload]
      leave_root
      @thread_note = thread_note
      start_plugins
      @hooks.call(:before_fork, nil)
      say_what_replaces_workers
      ForkSafety.disconnect(@log)
      ForkSafety.compact_memory
    end

    def start_plugins
      PumaLibrary.describe(@configuration, cluster: true)
      trap_stopping(hooks_on_request.any? || @configuration.plugins.any? ? STOPPING : %w[TERM])
      return if @configuration.plugins.empty?

      note_control(@socket.receive) if @link.introduced
      @children_before = Children.pids
      @plugins = Plugins.for(@configuration, @log, @master_proxy = MasterProxy.new(@socket))
      @plugins.start(late: ENV.delete(MoldHandle::LATE).to_s.split(","))
    end

    # Its thread looks for workers in Puma's classes and finds none.
    def say_what_replaces_workers
      return unless defined?(::PumaWorkerKiller)

      @log.say "! puma_worker_killer replaces no worker of Rondo: the settings max_memory and max_age do that"
    end

    def hooks_on_request
      ON_REQUEST.select { |name| @hooks.any?(name) }
    end

    # A terminal and systemd send these to all processes of the server: hooks and plugins have things to do after that.
    # With plugins the master has to know whether it has got the signal itself. What they fork has it as it had before.
    # A worker that begins ignores it until it has a handler of its own.
    def trap_stopping(names)
      mold = Process.pid
      names.each do |name|
        trap(name) do
          next @plugins && @socket.notify(:asks, verb: :interrupt) if Process.pid == mold

          ProcessSetup.end_by(name) unless @forks_worker
        end
      end
    end

    # Nobody stops what has stopped.
    def end_plugins
      return unless @plugins

      STOPPING.each { |name| trap(name) {} } # rubocop:disable Lint/EmptyBlock
      @plugins.stop(restart: (:generation if @restarting))
    end

    def end_children
      Children.end_all(Children.pids - @children_before, @settings[:worker_shutdown_timeout] / PART) if @plugins
    end

    # Puma calls after_stopped only when the server ends, because its process goes on through a phased restart. This one
    # ends: what after_booted has begun here ends as well. A restart by exec has had its before_restart.
    def call_last_hook
      return if @restarting || !(@booted || @finished)

      late = @finished || @hooks.any?(:after_stopped)
      return call_hook_for_master(:after_stopped) if late

      call_hook_for_master(:before_restart, launcher) if @hooks.any?(:before_restart)
    end

    def launcher
      LauncherView.new(@configuration, @log, @master_proxy || MasterProxy.new(@socket))
    end

    def leave_root
      return if Rondo.autoload?(:Root)

      @log.say "! Rondo::Root: nothing of it is called, because no program has called Rondo.start" if Root.any?
      Root.forget
    end

    def thread_note
      threads = ForkSafety.threads
      return "" if threads.empty?

      "#{threads.size} thread#{"s" if threads.size > 1} started while the application was loaded will not be in " \
        "the workers; start them in before_worker_boot: #{ForkSafety.describe(threads)}"
    end

    def serve_master
      while (message = @socket.receive)
        case message.kind
        when :control then note_control(message)
        when :fork then fork_worker(message)
        when :booted then booted(message)
        when :restarts then @restarting = message[:now] == "1"
        when :hook then answer_hook(message)
        when :finish then finish(message)
        when :reopen then @setup.redirect(again: true)
        when :backtraces then @log.error(ProcessSetup.thread_backtraces)
        end
      end
    end

    def answer_hook(message)
      name = ON_REQUEST.find { |known| known.to_s == message[:name] }
      @socket.notify(:begun)
      call_hook_for_master(name, argument_of(name, message)) if name
      @socket.notify(:called, name: name)
    end

    def argument_of(name, message)
      case name
      when :before_restart then launcher
      when :after_worker_shutdown
        EndedWorker.new(%i[index pid phase status age].to_h { |field| [field, message.number(field)] })
      end
    end

    # Workers are not forked meanwhile, so a hook has a deadline. After one that has not kept it all have a short one.
    def call_hook_for_master(name, *arguments)
      seconds = @impatient ? IMPATIENT : @settings[:worker_shutdown_timeout] / PART
      @impatient = true unless @hooks.try_for(seconds, name, *arguments)
    end

    # The server ends. Another generation that is there has booted, and ends, too.
    def finish(message)
      @restarting = false
      @finished = @booted || message.number(:alone) == 1
      @impatient = true if message.number(:hurry) == 1
    end

    # Once, however often the master has all its workers again.
    def booted(message)
      note_board(message.ios.first, message)
      message.ios.each(&:close)
      return if @booted

      @booted = true
      @master_proxy&.urls = message[:urls].to_s.split("\n")
      @hooks.try(:after_booted)
      @plugins&.booted { @socket.notify(:children, pids: children_of_plugins) }
    end

    # @param message [MessageSocket::Message, nil] nil: the master has gone
    def note_control(message)
      PumaLibrary.note_control(@configuration, message[:url], message[:token]) if message
    end

    # @return [String] what the master ends if this process dies
    def children_of_plugins
      @plugins ? (Children.pids - @children_before).join(",") : ""
    end

    # The board of the master that asks: after a restart by exec it is another one.
    def note_board(board, message)
      return if board.nil? || board.stat.ino == @board_seen

      @board_seen = board.stat.ino
      copy = board.dup
      copy.autoclose = false
      PumaLibrary.statistics.board = Scoreboard.new(message.number(:seats), copy.fileno)
    end

    def fork_worker(message)
      index = message.number(:index)
      message.check
      note_board(message.ios[1], message)
      @hooks.call(:before_worker_fork, index)
      ForkSafety.disconnect(@log)
      pid = fork_between(message)
      message.ios.each(&:close)
      wait_for(pid)
      @hooks.try(:after_worker_fork, index)
    rescue ConfigurationError, SystemCallError, IOError => e
      message.ios.each { |io| io.close unless io.closed? }
      @socket.notify(:not_forked, index: index, seat: message.number(:seat), message: e.message)
    end

    def fork_between(message)
      @forks_worker = true
      fork { between(message) }
    ensure
      @forks_worker = false
    end

    # The application may have reaped it.
    def wait_for(pid)
      Process.wait(pid)
    rescue Errno::ECHILD
      nil
    end

    # A process between mold and worker that ends at once: so the worker becomes an orphan, which
    # the master adopts.
    def between(message)
      fork do
        @socket.close
        Worker.new(message, app: @app, apps: @apps, settings: @settings, configuration: @configuration, setup: @setup,
                            log: @log, debug: @debug).run
      end
      exit!(0)
    rescue SystemCallError
      exit!(1)
    end
  end
end
