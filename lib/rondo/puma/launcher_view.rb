# frozen_string_literal: true

# What a plugin gets as its launcher: the methods of Puma::Launcher that plugins call, in the process that runs them.
# SPDX-License-Identifier: MIT

require "rondo/config/puma_options"
require "rondo/puma/bound_address"
require "rondo/puma/library"
require "rondo/puma/events"
require "rondo/puma/launcher_log"

module Rondo
  # A launcher as plugins know it.
  # @api private
  class LauncherView
    include WithoutValues

    # What plugins ask of `launcher.binder`.
    Binder = Struct.new(:sockets) do
      # @return [Array<IO, BoundAddress>] listening sockets; in a mold, which has none, their addresses. Empty before
      #   the server listens
      def ios
        sockets.call.map { |url, number| number ? socket(url, number) : BoundAddress.new(url) }
      end

      # @return [Array<Array(String, Object)>] with each URL one of {#ios}
      def listeners
        sockets.call.keys.zip(ios)
      end

      # @return [Array<Integer>]
      def connected_ports
        PumaLibrary.ports(sockets.call.keys)
      end

      private

      # The server closes it.
      def socket(url, number)
        kind = url.start_with?("unix:") ? UNIXServer : TCPServer
        kind.for_fd(number).tap { |socket| socket.autoclose = false }
      end
    end

    # Its blocks are called one after the other, whatever one of them does.
    class Events
      include PumaEvents

      # @yieldparam name [Symbol] of the event
      # @yieldparam block [#call] calls one of its blocks
      def initialize(&call)
        @call = call
      end

      # @param name [Symbol]
      # @param given [Array<Object>] what the blocks get
      # @return [void]
      def fire(name, *given)
        hooks_for(name).each { |block| @call.call(name, -> { block.call(*given) }) }
      end
    end

    # @return [Events]
    attr_reader :events
    # @return [LauncherLog]
    attr_reader :log_writer
    # @return [Configuration] it answers `options`, too
    attr_reader :config
    # @return [Binder]
    attr_reader :binder

    # @param configuration [Configuration]
    # @param log [Logger]
    # @param process [Object] has stop, halt, restart and phased_restart for the server, descriptors (or nil) by URL
    # @yieldparam name [Symbol] of an event
    # @yieldparam block [#call] calls one of its blocks
    def initialize(configuration, log, process, &call)
      @config = configuration
      @process = process
      @events = Events.new(&call)
      @log_writer = LauncherLog.new(log)
      @binder = Binder.new(-> { process.descriptors })
    end

    # @return [Configuration::PumaOptions]
    def options
      @config.options
    end

    # @return [Hash{Symbol => Object}]
    def stats
      PumaLibrary.known_statistics.stats
    end

    # @return [Array<Integer>]
    def connected_ports
      @binder.connected_ports
    end

    # Graceful.
    # @return [void]
    def stop
      @process.stop
    end

    # At once.
    # @return [void]
    def halt
      @process.halt
    end

    # The server again, by exec.
    # @return [void]
    def restart
      @process.restart
    end

    # New code, one worker after the other.
    # @return [Boolean] whether there are workers
    def phased_restart
      return false unless @process.respond_to?(:phased_restart)

      @process.phased_restart
      true
    end

    # @yieldparam name [String]
    # @yieldparam backtrace [Array<String>]
    # @return [void]
    def thread_status
      Thread.list.each { |thread| yield "Thread: #{thread.inspect}", thread.backtrace || ["<no backtrace available>"] }
    end
  end
end
