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

module Rondo
  # Loads the application, forks workers when the master asks for one.
  class Mold
    # What a mold gets from the master.
    Link = Struct.new(:socket, :generation, :master, :protocol, keyword_init: true)

    # @param env [Hash] the variable is removed, so that children do not take it too
    # @return [Link, nil] nil in any process that is not a mold
    def self.extract(env = ENV)
      protocol, descriptor, generation, master = env.delete(MoldHandle::VARIABLE)&.split(":")&.map(&:to_i)
      descriptor && Link.new(socket: MessageSocket.adopt(descriptor), generation: generation, master: master,
                             protocol: protocol)
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
      @debug = debug
      @program = program
      @socket = link.socket
    end

    # @return [Integer] exit code
    # @raise [Error] the application cannot be served, in one line
    def run
      $stdout.sync = true
      check_protocol
      ProcessTree.set_parent_death_signal(Signal.list["KILL"])
      ignore_signals
      prepare
      load_app
      say_ready
      serve_master
      0
    end

    private

    # The settings may be more than a message has room for.
    def say_ready
      file = @program && IO.for_fd(TLS.seal(@program))
      @socket.notify(:ready, ios: [file].compact, threads: thread_note)
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
      @log = @settings.logger
      @hooks = Hooks.new(@configuration, @log)
      @setup.export_environment
      @setup.name_process("rondo: mold #{@link.generation}: #{@link.master}")
    end

    def load_app
      @app, @apps = Application.load_all(@settings, @log, debug: @debug) if @settings[:preload]
      leave_root
      @hooks.call(:before_fork)
      ForkSafety.disconnect(@log)
      ForkSafety.compact_memory
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
        when :fork then fork_worker(message)
        when :booted then @hooks.try(:after_booted)
        when :reopen then @setup.redirect(again: true)
        when :backtraces then @log.error(ProcessSetup.thread_backtraces)
        end
      end
    end

    def fork_worker(message)
      index = message.number(:index)
      message.check
      @hooks.call(:before_worker_fork, index)
      ForkSafety.disconnect(@log)
      pid = fork { between(message) }
      message.ios.each(&:close)
      wait_for(pid)
      @hooks.try(:after_worker_fork, index)
    rescue ConfigurationError, SystemCallError, IOError => e
      message.ios.each { |io| io.close unless io.closed? }
      @socket.notify(:not_forked, index: index, seat: message.number(:seat), message: e.message)
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
