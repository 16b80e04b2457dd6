# frozen_string_literal: true

# The verbs of the configuration file (configuration.rb): Puma's, iodine's where Puma has none, and every
# setting of the core by its own name. A verb of something this version does not have is accepted with a
# line at boot; an unknown verb is an error that names the file, the line and the nearest verb.
# SPDX-License-Identifier: MIT

require "rondo/config/settings"
require "rondo/config/values"

module Rondo
  class Configuration
    # The verbs themselves; a file is evaluated with one of these as self.
    class Verbs
      include VerbValues

      # Puma's ways to share memory and to balance, which every worker of Rondo has anyway.
      BUILT_IN = { fork_worker: "Rondo always forks workers from a process that has loaded the application",
                   nakayoshi_fork: "Rondo always compacts memory before it forks workers",
                   wait_for_less_busy_worker: "Rondo always balances connections between workers" }.freeze
      # Puma gives each request a fiber on its thread, so that nothing stays in its fiber-local variables.
      FIBER_EACH = %i[fiber_per_request clean_thread_locals].freeze
      # Hooks around workers, under Puma's names of today and of before.
      WORKER_HOOKS = { before_fork: :before_fork,
                       before_worker_fork: :before_worker_fork, on_worker_fork: :before_worker_fork,
                       after_worker_fork: :after_worker_fork, after_worker_boot: :after_worker_fork,
                       before_worker_boot: :before_worker_boot, on_worker_boot: :before_worker_boot,
                       before_worker_drain: :before_worker_drain, after_master_loss: :after_master_loss,
                       before_worker_shutdown: :before_worker_shutdown,
                       on_worker_shutdown: :before_worker_shutdown,
                       after_worker_shutdown: :after_worker_shutdown }.freeze
      # No worker of Rondo is forked from another one.
      REFORK_HOOKS = %i[before_refork after_refork on_refork].freeze
      NOT_YET = %i[out_of_band idle_timeout supported_http_methods set_remote_address].freeze
      WITHOUT_MEANING = %i[queue_requests io_selector_backend max_io_threads max_fast_inline
                           prune_bundler extra_runtime_dependencies
                           drain_on_shutdown shutdown_debug restart_command
                           silence_single_worker_warning silence_fork_callback_warning
                           reaping_time mutate_stdout_and_stderr_to_sync_on_write].freeze
      HOOKS = { after_booted: :after_booted, on_booted: :after_booted,
                before_drain: :before_drain,
                after_stopped: :after_stopped, on_stopped: :after_stopped,
                before_restart: :before_restart, on_restart: :before_restart,
                before_thread_start: :before_thread_start, on_thread_start: :before_thread_start,
                before_thread_exit: :before_thread_exit, on_thread_exit: :before_thread_exit }.freeze

      # @param configuration [Configuration]
      def initialize(configuration)
        @configuration = configuration
      end

      Settings::CORE.each do |name, row|
        if row[:unit] == "bool"
          define_method(name) { |value = true| set(name, value ? 1 : 0) }
        else
          define_method(name) { |value| set(name, core_number(name, value)) }
        end
      end

      Settings::CORE_NAMES.each do |name, names|
        next unless names.verb

        define_method(names.verb) { |value| set(name, renamed_number(name, names.verb, value)) }
      end

      BUILT_IN.each { |verb, why| define_method(verb) { |*, **| note "#{verb}: #{why}" } }

      FIBER_EACH.each do |verb|
        define_method(verb) do |value = true|
          note "#{verb}: each request finds an empty fiber if fibers is set, and none without" if value
        end
      end

      REFORK_HOOKS.each do |verb|
        define_method(verb) do |*, &block|
          need_block(verb, block)
          note "#{verb}: Rondo never forks a worker from another worker; use before_fork, which runs before " \
               "every fork of a worker"
        end
      end

      NOT_YET.each { |verb| define_method(verb) { |*, **| note "#{verb}: not in this version" } }
      WITHOUT_MEANING.each do |verb|
        define_method(verb) { |*, **, &_block| note "#{verb}: has no effect in Rondo" }
      end

      HOOKS.merge(WORKER_HOOKS).each do |verb, name|
        define_method(verb) do |key = nil, &block|
          add_hook(name, need_block(verb, block), key)
        end
      end

      # @param uri [String, false] one more address to listen on; false: none, there may be raw listeners
      def bind(uri)
        return set(:bind, false) if uri == false

        set(:bind, [*(current(:bind) || []), uri.to_s])
      end

      # One more address to listen on, whose connections are raw (docs/RAW.md).
      # @param uri [String] as for {#bind}
      # @param maker [#call, Object, nil] as for {Server#listen_raw}
      # @yieldreturn [Object, nil] the handler of a connection that was just accepted
      def listen_raw(uri, maker = nil, &block)
        uri = uri.to_s
        Address.parse(uri)
        listeners = current(:listen_raw) || {}
        if listeners.any? { |known, _| Address.key(known) == Address.key(uri) }
          fail_here "listen_raw #{Address.key(uri)} is there twice"
        end
        set(:listen_raw, { **listeners, uri => Raw.maker_of(maker, block) })
      rescue AddressError, ArgumentError => e
        fail_here "listen_raw #{Address.key(uri)}: #{e.message.sub(/\Acannot listen on \S+: /, "")}"
      end

      # One more address to listen on, with an application of its own.
      # @param uri [String] as for {#bind}
      # @param app [#call, String, nil] an application, or the path of a rackup file; or a block
      # @yieldparam env [Hash]
      def listen(uri, app = nil, &block)
        place = Address.key(uri.to_s)
        fail_here "listen #{place}: it has no port" if Address.host?(uri.to_s)
        uri = Address.uri(uri.to_s, 0)
        Address.parse(uri)
        fail_here "listen #{place} needs an application or a block, and not both" if app.nil? == block.nil?
        listeners = current(:listen) || {}
        known = listeners.keys.map { |other| Address.key(other) }
        fail_here "listen #{place} is there twice" if known.include?(Address.key(uri))
        set(:listen, { **listeners, uri => application(block || app) })
      rescue AddressError => e
        fail_here "listen #{place}: #{e.message.sub(/\Acannot listen on \S+: /, "")}"
      end

      # @param port [Integer, String]
      # @param host [String, nil]
      def port(port, host = nil)
        bind Address.tcp_uri(host || Address.any_host, Integer(port.to_s, 10))
      end

      # Removes the addresses that were bound so far.
      def clear_binds!
        set(:bind, [])
      end

      # Changes nothing: the server always uses the sockets that systemd hands over.
      def bind_to_activated_sockets(*)
        note "bind_to_activated_sockets: Rondo always uses the sockets that systemd hands over"
      end

      # @param low [Integer, String]
      # @param high [Integer, String]
      def threads(low, high = low)
        low, high = [low, high].map { |value| Integer(value.to_s, 10) }
        fail_here "threads: the minimum #{low} is above the maximum #{high}" if low > high
        fail_here "threads: at least one thread is needed" if high < 1
        set(:min_threads, core_number(:min_threads, [low, 1].max))
        set(:max_threads, core_number(:max_threads, high))
      end

      # @param count [Integer, String, Symbol, nil] :auto for as many as there are CPUs; nil or "":
      #   the setting is not set
      def workers(count)
        text = count.to_s.strip
        return if text.empty?
        return set(:workers, "auto") if text == "auto"

        set(:workers, Integer(text, 10))
      rescue ArgumentError
        fail_here "workers must be a number or :auto, not #{count.inspect}"
      end

      # @param size [Integer, String] memory of a worker after which it is replaced, as "512m"
      # @param measure [Symbol] :rss, or :pss, where shared pages count in parts
      def max_memory(size, measure: nil)
        memory_measure(measure) if measure
        set(:max_memory, Settings.bytes(size))
      rescue ArgumentError
        fail_here "max_memory must be a size, not #{size.inspect}"
      end

      # @param seconds [Integer, Float, Symbol] :forever and :immediately as in Puma
      def force_shutdown_after(seconds = :forever)
        seconds = { forever: 86_400, immediately: 0 }.fetch(seconds, seconds)
        set(:drain_timeout_ms, milliseconds(:force_shutdown_after, seconds))
      end

      # @param stdout [String, nil]
      # @param stderr [String, nil]
      # @param append [Boolean]
      def stdout_redirect(stdout = nil, stderr = nil, append = false) # rubocop:disable Style/OptionalBooleanParameter
        set(:redirect_stdout, path(:stdout_redirect, stdout)) if stdout
        set(:redirect_stderr, path(:stdout_redirect, stderr)) if stderr
        set(:redirect_append, append)
      end

      # @param logger [#info, #write, nil]
      def custom_logger(logger)
        return set(:custom_logger, logger) if logger.nil? || logger.respond_to?(:write) ||
                                              %i[info warn error].all? { |name| logger.respond_to?(name) }

        fail_here "custom_logger must respond to info, warn and error, or to write; #{logger.inspect} does not"
      end

      # @yieldparam line [String]
      def log_formatter(&block)
        need_block(:log_formatter, block)
        set(:log_formatter, block)
      end

      # @param origins [Array<Symbol, String, #call>] as {Origins#initialize} takes them, or a block
      # @yieldparam env [Hash]
      def allowed_origins(*origins, &block)
        origins = origins.flatten
        allowed = block || (origins.size == 1 ? origins.first : origins)
        Origins.from(allowed)
        set(:allowed_origins, allowed)
      rescue SettingError => e
        fail_here e.message
      end

      # @param folders [Array<String>] besides those that were named before; false: none at all
      def x_sendfile_root(*folders)
        folders = folders.flatten
        return set(:x_sendfile_root, []) if folders == [false]

        set(:x_sendfile_root, [*current(:x_sendfile_root), *folders.map { |folder| path(:x_sendfile_root, folder) }])
      end

      # @param name [String, nil] of a header, in any letter case
      def sendfile_type(name)
        types = Settings::SHELL[:sendfile_type].choices
        known = types.any? { |type| type.casecmp?(name.to_s) }
        fail_here "sendfile_type must be #{types.join(" or ")}, not #{name.inspect}" unless known || name.nil?
        set(:sendfile_type, name&.to_s)
      end

      # @param handler [Proc, nil] or a block
      def lowlevel_error_handler(handler = nil, &block)
        handler ||= need_block(:lowlevel_error_handler, block)
        return set(:lowlevel_error_handler, handler) if handler.respond_to?(:call)

        fail_here "lowlevel_error_handler must respond to call; #{handler.inspect} does not"
      end

      # @yieldreturn [PubSub::Engine, nil] the default one, made in the process that was started: the master, if
      #   there is one
      def pubsub_engine(&block)
        set(:pubsub_engine, need_block(:pubsub_engine, block))
      end

      # @param url [String] tcp://HOST:PORT, unix:///PATH or "auto"
      # @param options [Hash] auth_token [String], no_token [Boolean], data_only [Boolean]
      def activate_control_app(url = "auto", options = {})
        unknown = options.keys - %i[auth_token no_token data_only umask]
        fail_here "activate_control_app: unknown option #{unknown.first}" if unknown.any?
        set(:control_url, url.to_s)
        set(:control_data_only, options[:data_only] ? true : false) if options.key?(:data_only)
        token = options[:no_token] ? "none" : options[:auth_token]
        set(:control_token, token.to_s) if token
      end

      # @param name [Symbol, String]
      def plugin(name)
        return set(:tmp_restart, true) if name.to_sym == :tmp_restart

        note "plugin #{name}: Rondo does not load plugins of Puma; run its work as a process of its own"
      end

      # @param path [String] another file of verbs
      def load(path)
        EVALUATE.call(self, File.read(path), path)
      rescue SystemCallError => e
        fail_here "cannot load #{path}: #{SystemCallError.new(nil, e.errno).message}"
      end

      # @param object [#call, nil] an application without a file; or a block
      # @yieldparam env [Hash]
      def app(object = nil, &block)
        set(:app, object || need_block(:app, block))
      end

      # Verbs that count only without workers.
      def single(&block)
        @configuration.later << [false, need_block(:single, block)]
      end

      # Verbs that count only with workers.
      def cluster(&block)
        @configuration.later << [true, need_block(:cluster, block)]
      end

      # One more address to listen on, with TLS.
      # @param host [String]
      # @param port [Integer, String]
      # @param options [Hash{Symbol => Object}] cert, key, ca [String] paths of PEM files; cert_pem, key_pem [String]
      #   PEM itself; key_password_command; verify_mode, verification_flags, ssl_cipher_filter, ssl_ciphersuites;
      #   certs [Array<Hash>] further certificates with keys; backlog, low_latency, reuse_port
      def ssl_bind(host, port, options = {})
        place = Address.tcp_uri(host, Integer(port.to_s, 10)).sub("tcp:", "ssl:")
        uri = "#{place}?#{TLS.query(options)}"
        Address.parse(uri)
        bind uri
      rescue AddressError, TLS::Refused, ArgumentError => e
        fail_here "ssl_bind #{host}:#{port}: #{e.message.sub(/\Acannot listen on \S+: /, "")}"
      end

      # @param name [Symbol] of a setting
      # @param default [Object]
      # @return [Object] what was set so far
      def get(name, default = nil)
        @configuration.values.key?(name) ? current(name) : default
      end

      # Makes the verb of a setting that has none above.
      # @param row [Settings::Row]
      # @return [void]
      def self.define(row)
        verb = row.verb_name
        return if verb.nil? || public_method_defined?(verb, false)
        return define_method(verb) { |value = true| set(row.name, value) } if row.kind == :switch

        define_method(verb) { |value| set(row.name, checked(row, verb, value)) }
      end
      Settings::ROWS.each { |row| define(row) }

      private

      def application(app)
        app.respond_to?(:call) ? app : path(:listen, app)
      end

      def current(name)
        @configuration.values[name]&.first
      end

      def set(name, value)
        @configuration.set(name, value)
      end

      def note(line)
        @configuration.notes << line
      end

      # Hooks with the same key share a Hash, which each gets as its last argument.
      def add_hook(name, block, key)
        kept = key && @configuration.kept[key]
        @configuration.hooks[name] << (kept ? ->(*given) { block.call(*given, kept) } : block)
      end

      def respond_to_missing?(*)
        false
      end

      def method_missing(name, *)
        verbs = Verbs.public_instance_methods(false)
        fail_here "unknown setting #{name}#{Server.nearest(name, verbs)}"
      end
    end
  end
end
