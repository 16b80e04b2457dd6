# frozen_string_literal: true

# A mold as the master sees it, and how one is started: the command line of the server again, with
# a socket to the master in an environment variable. The process itself is in mold.rb.
# SPDX-License-Identifier: MIT

require "rondo/cluster/message_socket"
require "rondo/process/process_loop"

module Rondo
  # One generation of the application's code.
  # @api private
  class MoldHandle
    VARIABLE = "RONDO_MOLD"
    # Names of plugins that start when those of the generation before have ended.
    LATE = "RONDO_LATE_PLUGINS"
    # Of the messages between master, mold and workers.
    PROTOCOL = 4
    # Said to a mold whose first message is about the control server.
    INTRODUCED = 1

    # A hook that a mold calls when the master says so: its name, what goes along, what is called when it has
    # ended, whatever came of it, and whether it has begun.
    Call = Struct.new(:name, :fields, :done, :begun)

    # @return [Integer] counts phased restarts
    attr_reader :generation
    # @return [Integer]
    attr_reader :pid
    # @return [MessageSocket]
    attr_reader :socket
    # @return [Symbol] :loading, :ready, :failed, :ended
    attr_accessor :state
    # @return [Float] seconds of the monotonic clock
    attr_reader :started
    # @return [String, nil] the settings of a program that began the server, of {Program.write}
    attr_accessor :program
    # @return [Boolean] whether it runs plugins, which end with it
    attr_accessor :plugins
    # @return [Array<Integer>] processes that its plugins have started, as far as it has told
    attr_accessor :children
    # @return [Array<String>] hooks of {Mold::ON_REQUEST} that its configuration has
    attr_accessor :hooks
    # @return [Boolean, nil] whether the server shall end at once
    attr_reader :hurried
    # @return [Array<Call>] hooks that it has been told to call, and has not answered yet
    attr_reader :calls
    # @return [Integer] workers of it that ended before they were ready
    attr_accessor :lost

    # Starts a process.
    # @param generation [Integer]
    # @param command [Hash] of {Inherited.command}
    # @return [MoldHandle]
    # @raise [Error] one line
    def self.start(generation, command)
      connected(generation) do |other|
        words = { VARIABLE => [PROTOCOL, other.fileno, generation, Process.pid, INTRODUCED].join(":") }
        Process.spawn(words, *command[:words], other.fileno => other.fileno, chdir: command[:folder])
      end
    end

    # @param generation [Integer]
    # @yieldparam other [MessageSocket] for the process that the block starts
    # @yieldparam own [MessageSocket] for this one
    # @yieldreturn [Integer] process id
    # @return [MoldHandle]
    # @raise [Error] one line
    def self.connected(generation)
      own, other = MessageSocket.pair
      new(generation: generation, pid: yield(other, own), socket: own)
    rescue SystemCallError => e
      own&.close
      raise Error, "cannot start a mold: #{e.message}"
    ensure
      other&.close
    end

    # @param generation [Integer]
    # @param pid [Integer, nil] nil for one that has ended
    # @param socket [MessageSocket, nil] the same
    # @param state [Symbol] see {#state}
    def initialize(generation:, pid:, socket:, state: :loading)
      @generation = generation
      @pid = pid
      @socket = socket
      @state = state
      @started = ProcessLoop.now
      @lost = 0
      @plugins = false
      @children = []
      @hooks = []
      @calls = []
    end

    # @return [Boolean]
    def ready?
      @state == :ready
    end

    # @return [Boolean]
    def loading?
      @state == :loading
    end

    # @return [Boolean] whether there is a process
    def alive?
      ready? || loading?
    end

    # @return [Boolean] whether it has something to do after its last worker, which others wait for
    def awaited?
      @plugins || @hooks.any?
    end

    # Has it call a hook, if it has that.
    # @param call [Call]
    # @return [void]
    def call_hook(call)
      return call.done&.call unless @hooks.include?(call.name)

      @calls << call
      @socket.notify(:hook, name: call.name, **call.fields)
    end

    # It has begun with the first one.
    # @return [void]
    def hook_begun
      @calls.first&.begun = true # a master before may have told it
    end

    # It has answered.
    # @return [void]
    def hook_called
      @calls.shift&.done&.call
    end

    # @return [String] for the log
    def to_s
      "the mold (PID: #{@pid})"
    end

    # Ends it: it goes when its socket is closed.
    # @return [void]
    def stop
      @state = :ended
      @socket.close unless @socket.closed?
    end

    # The server shall end at once. One with plugins does not wait for them.
    # @return [void]
    def hurry
      @hurried = true
      return if @hooks.include?("after_stopped") && !@plugins

      @hooks = []
      kill
    end

    # Ends it at once, also while it loads.
    # @return [void]
    def kill
      Process.kill("KILL", @pid)
    rescue Errno::ESRCH
      nil
    end
  end
end
