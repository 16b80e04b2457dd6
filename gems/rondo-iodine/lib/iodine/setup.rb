# frozen_string_literal: true

# What Rondo.start gets: iodine's settings in Rondo's units, one application, and the states as hooks.
# SPDX-License-Identifier: MIT

require "iodine/public_files"

module Iodine
  # @api private
  module Base
    # One start.
    class Setup
      # Iodine's own defaults.
      DEFAULTS = { timeout: 40, ping: 40, max_body: 50, max_headers: 32, max_msg: 250 }.freeze
      MIB = 1024 * 1024
      # Rondo's setting, and how many of its units are one of iodine's.
      UNITS = { timeout: [:keep_alive_timeout_ms, 1000], ping: [:ping_interval_ms, 1000],
                max_body: [:max_body_bytes, MIB], max_headers: [:max_head_bytes, 1024],
                max_msg: [:max_message_bytes, 1024] }.freeze

      class << self
        # @return [String, nil] of the command
        attr_accessor :pidfile
      end

      # @param listeners [Array<Listener>]
      # @raise [RuntimeError] what cannot be served
      def initialize(listeners)
        @http, @raw = listeners.partition { |listener| !listener.place.raw? }
        @options = (@http.first || @raw.first)&.options || DEFAULT_SETTINGS
        @threads, @workers = Base.concurrency(Iodine.threads, Iodine.workers)
        @ending = Mutex.new
      end

      # @return [void] when the server has stopped
      def serve
        setup = self
        Iodine.clustered = cluster?
        Rondo::Root.run { Iodine.begin_obeying } if cluster?
        Base.begin_tasks(cluster?)
        Base.begin_subscriptions if cluster?
        Rondo.start(application, **settings) { setup.hooks(self) }
      end

      # @return [Boolean]
      def cluster?
        @workers > 1
      end

      # @param verbs [Rondo::Configuration::Verbs]
      # @return [void]
      def hooks(verbs)
        listen_raw(verbs)
        cluster? ? hooks_of_cluster(verbs) : hooks_of_one(verbs)
      end

      private

      def settings
        { workers: cluster? ? @workers : 0, threads: [@threads, @threads], bind: addresses, listen: others,
          quiet: Iodine.verbosity < INFORMATION, silent: Iodine.verbosity < WARNINGS, request_log_output: "stderr",
          log_requests: @options[:log] ? true : false, raise_exception_on_sigterm: false, public: folder,
          x_sendfile_root: roots,
          pidfile: Setup.pidfile,
          **sizes }.compact.merge(redis_url: redis)
      end

      # Without an application there is no HTTP.
      def addresses
        @http.empty? ? false : @http.select { |each| each.handler.equal?(first) }.map { |each| each.place.uri }
      end

      # Listeners with another application than the first one.
      def others
        @http.reject { |each| each.handler.equal?(first) }
             .to_h { |each| [each.place.uri, Application.new(with_files(each))] }
      end

      def with_files(listener)
        folder = folder_of(listener.options)
        folder ? PublicFiles.new(folder, listener.handler) : listener.handler
      end

      # Those of all listeners, for X-Sendfile. nil: as the server has it.
      def roots
        folders = @http.filter_map { |each| folder_of(each.options) }.uniq
        folders unless folders.size < 2
      end

      def first
        @http.first&.handler
      end

      def sizes
        UNITS.to_h do |name, (setting, factor)|
          value = @options[name]
          value = DEFAULTS[name] unless value.is_a?(Integer) && value.positive?
          [setting, value * factor]
        end
      end

      # Once for all workers, if it is the default engine.
      def redis
        engine = PubSub.default
        return unless engine.is_a?(PubSub::Redis)

        engine.give_to_server
        engine.url
      end

      def folder
        path = @options[:public]
        found = folder_of(@options)
        return found if found || !path.is_a?(String)

        Base.warning("the public folder #{path} does not exist, no files are served.")
        nil
      end

      def folder_of(options)
        path = options[:public]
        path if path.is_a?(String) && File.directory?(path)
      end

      def application
        first.respond_to?(:call) ? Application.new(first) : Application.new(->(_env) { [404, {}, []] })
      end

      def listen_raw(verbs)
        @raw.each do |listener|
          handler = listener.place.tls ? listener.place.tls.handler(listener.handler) : listener.handler
          verbs.listen_raw(listener.place.uri) { Base.adapt(handler) }
        end
      end

      def hooks_of_one(verbs)
        verbs.after_booted do
          Base.reach(:on_start)
          Iodine.begin_worker(child: false)
        end
        verbs.before_drain { begin_shutdown }
        verbs.after_stopped { finish }
      end

      def hooks_of_cluster(verbs)
        verbs.before_worker_fork { Base.reach(:before_fork) }
        verbs.after_worker_fork { Base.reach(:after_fork) && Base.reach(:enter_master) }
        verbs.before_worker_boot do
          Iodine.begin_worker(child: true)
          %i[after_fork enter_child on_start].each { |name| Base.reach(name) }
        end
        verbs.after_master_loss { Base.reach(:on_parent_crush) }
        verbs.before_worker_drain { begin_shutdown }
        verbs.before_worker_shutdown { finish }
        verbs.before_drain { Rondo::Root.run { begin_shutdown } } # not on the thread of the supervisor
        verbs.after_worker_exit { |worker| mourn unless worker.process_status.success? }
        verbs.after_drain { finish }
      end

      # Not on the thread of the supervisor.
      def mourn
        Rondo::Root.run { Base.reach(:on_child_crush) } unless Base.state(:on_child_crush).empty?
      end

      # Once, and whoever comes second waits.
      def begin_shutdown
        @ending.synchronize do
          return if @ended

          @ended = true
          Iodine.end_running
          Base.reach(:start_shutdown)
        end
      end

      def finish
        begin_shutdown
        Base.reach(:on_finish)
      end
    end

    # The application, with adapters around the handlers that it gives.
    class Application
      UPGRADES = %w[rack.upgrade upgrade.tcp].freeze

      # @param app [#call]
      def initialize(app)
        @app = app
      end

      # @param env [Hash]
      # @return [Array]
      def call(env)
        env[OldUpgrade::ASKED] = true if env["rack.upgrade?"] == :websocket
        answer = @app.call(env)
        old = env[OldUpgrade::GIVEN]
        env["rack.upgrade"] ||= OldUpgrade.adapt(old) if old
        UPGRADES.each do |name|
          handler = env[name]
          env[name] = Adapter.new(handler) if handler
        end
        answer
      end
    end

    # @param maker [#call, Object] of a raw listener
    # @return [Adapter, nil]
    def self.adapt(maker)
      handler = maker.respond_to?(:call) ? maker.call : maker
      handler && Adapter.new(handler)
    end
  end
end
