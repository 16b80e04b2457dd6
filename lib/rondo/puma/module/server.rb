# frozen_string_literal: true

# Puma::Server of a bundle without the gem puma: one more server in this process, which plugins make for their metrics
# and tests for themselves.
# SPDX-License-Identifier: MIT

require "socket"
require "rondo"
require "rondo/puma/library"
require "rondo/puma/module/log_writer"

module Puma
  # Puma's methods over a {Rondo::Server}.
  class Server
    # Options of Puma's that this server has, and their names here. The others have no effect.
    NUMBERS = { max_threads: :max_threads, max_io_threads: :max_io_threads,
                http_content_length_limit: :max_body_bytes }.freeze
    SECONDS = { persistent_timeout: :keep_alive_timeout_ms, first_data_timeout: :head_timeout_ms }.freeze
    SWITCHES = { enable_keep_alives: :keep_alive, early_hints: :early_hints }.freeze

    # @return [Object, nil] the server of this process
    def self.current
      Rondo::PumaLibrary.current
    end

    # @return [#call]
    attr_reader :app
    # @return [Integer]
    attr_reader :min_threads
    # @return [Integer]
    attr_reader :max_threads
    # @return [Hash]
    attr_reader :options
    # @return [Events]
    attr_reader :events
    # @return [LogWriter]
    attr_reader :log_writer
    # @return [Thread, nil]
    attr_reader :thread

    # @param app [#call]
    # @param events [Events, LogWriter, nil]
    # @param options [Hash{Symbol => Object}] Puma's
    def initialize(app, events = nil, options = {})
      @app = app
      @events = events.is_a?(Events) ? events : Events.new
      @options = options
      @log_writer = options[:log_writer] || (events.is_a?(LogWriter) ? events : LogWriter.stdio)
      @min_threads = options.fetch(:min_threads, 0)
      @max_threads = options.fetch(:max_threads, 5)
      @sockets = []
      @state = :stop
      @lock = Mutex.new
    end

    # @param host [String]
    # @param port [Integer, String]
    # @param _optimize_for_latency [Boolean] has no effect
    # @param backlog [Integer]
    # @return [TCPServer] the listening socket
    # @raise [Rondo::AddressError] one line
    def add_tcp_listener(host, port, _optimize_for_latency = true, backlog = 1024) # rubocop:disable Style/OptionalBooleanParameter
      listen("#{Rondo::Address.tcp_uri(host, Integer(port.to_s, 10))}?backlog=#{backlog}", TCPServer)
    end

    # @param path [String]
    # @param umask [Integer, nil]
    # @param mode [Integer, nil]
    # @param backlog [Integer]
    # @return [UNIXServer] the listening socket
    # @raise [Rondo::AddressError] one line
    def add_unix_listener(path, umask = nil, mode = nil, backlog = 1024)
      words = { umask: umask&.to_s(8), mode: mode&.to_s(8), backlog: backlog }.compact
      listen("unix://#{path}?#{words.map { |pair| pair.join("=") }.join("&")}", UNIXServer)
    end

    # Serves until it is stopped.
    # @param background [Boolean] on a thread of its own
    # @return [Thread, nil] that thread
    # @raise [Rondo::AddressError] it listens nowhere
    def run(background = true, **) # rubocop:disable Style/OptionalBooleanParameter -- Puma's
      raise Rondo::AddressError, "the server has no address to listen on" if @sockets.empty?

      @events.fire(:state, :booting)
      @state = :run
      return serve unless background

      @thread = Thread.new { serve }
    end

    # Graceful.
    # @param wait [Boolean] until it has stopped
    # @return [void]
    def stop(wait = false) # rubocop:disable Style/OptionalBooleanParameter -- Puma's
      end_as(:stop, wait)
    end

    # At once.
    # @param wait [Boolean]
    # @return [void]
    def halt(wait = false) # rubocop:disable Style/OptionalBooleanParameter -- Puma's
      end_as(:halt, wait, force: true)
    end

    # Stops, and says :restart to those who registered for the state.
    # @param wait [Boolean]
    # @return [void]
    def begin_restart(wait = false) # rubocop:disable Style/OptionalBooleanParameter -- Puma's
      end_as(:restart, wait)
    end

    # @return [Boolean]
    def shutting_down?
      %i[stop restart halt].include?(@state)
    end

    # @return [Hash{Symbol => Integer}] empty before it runs
    def stats
      return {} unless @state == :run

      Rondo::PumaStatistics.new(nil).status(server.stats)
    end

    { backlog: :backlog, running: :running, pool_capacity: :pool_capacity, busy_threads: :busy_threads,
      requests_count: :requests_count }.each do |name, key|
      define_method(name) { stats[key] || 0 }
    end

    # @return [Array<Integer>]
    def connected_ports
      Rondo::PumaLibrary.ports(server.addresses)
    end

    private

    def listen(uri, kind)
      url = server.listen(uri)
      kind.for_fd(server.descriptors.fetch(url)).tap do |socket|
        socket.autoclose = false # the server closes it
        @sockets << socket
      end
    end

    def server
      @server ||= Rondo::Server.new(@app, **settings, min_threads: [@min_threads, 1].max.clamp(1, @max_threads),
                                                      max_threads: @max_threads)
    end

    def settings
      given = options.slice(*NUMBERS.keys).compact.transform_keys(NUMBERS)
      SECONDS.each { |name, own| given[own] = (options[name] * 1000).round if options[name] }
      SWITCHES.each { |name, own| given[own] = options[name] if [true, false].include?(options[name]) }
      given[:lowlevel_error_handler] = options[:lowlevel_error_handler] if options[:lowlevel_error_handler]
      given[:environment] = options[:environment].to_s if options[:environment]
      given
    end

    def serve
      @events.fire(:state, :running)
      server.run
    ensure
      @events.fire(:state, @state)
      @events.fire(:state, :done)
    end

    def end_as(state, wait, force: false)
      @lock.synchronize do
        return if @state != :run && !force

        @state = state
      end
      server.stop(force: force)
      @thread&.join if wait && @thread != Thread.current
    end
  end
end
