# frozen_string_literal: true

# The verbs of the configuration file (configuration.rb): Puma's, iodine's where Puma has none, and every
# setting of the core by its own name. A verb of something this version does not have is accepted with a
# line at boot; an unknown verb is an error that names the file, the line and the nearest verb.
# SPDX-License-Identifier: MIT

require "rondo/config/settings"
require "rondo/config/values"
require "rondo/config/verb_hooks"

module Rondo
  class Configuration
    # The verbs themselves; a file is evaluated with one of these as self. What a verb returns means nothing. One that
    # refuses its value raises {ConfigurationError}: one line that names the file and its line.
    # @api public
    class Verbs
      include VerbValues
      include VerbHooks

      # Puma's ways to share memory and to balance, which every worker of Rondo has anyway.
      # @api private
      BUILT_IN = { nakayoshi_fork: "Rondo always compacts memory before it forks workers",
                   wait_for_less_busy_worker: "Rondo always balances connections between workers" }.freeze
      # Verbs of Puma that are accepted.
      # @api private
      WITHOUT_MEANING = %i[prune_bundler extra_runtime_dependencies reaping_time
                           silence_single_worker_warning silence_fork_callback_warning].freeze
      # The reason in a note.
      # @api private
      NOT_PUMA = "a restart executes the program that runs, and not Puma"
      # Heroku's files of Puma 3 have it.
      DefaultRackup = "config.ru" # rubocop:disable Naming/ConstantName -- theirs

      # @api private
      # @param configuration [Configuration]
      def initialize(configuration)
        @configuration = @config = configuration
        @options = PumaOptions.new(configuration) # files and plugins use these two as those of Puma::DSL
      end

      # @api private
      # @return [Array<Symbol>] verbs of the server's own; those of plugins are not among them
      def self.of_server
        @of_server ||= public_instance_methods(false).freeze
      end

      Settings::CORE.except(:max_keep_alive).each do |name, row| # which has a verb of its own
        if row[:unit] == "bool"
          define_method(name) { |value = true| set(name, truth(name, value)) }
        else
          define_method(name) { |value| set(name, core_number(name, value)) }
        end
      end

      Settings::CORE_NAMES.each do |name, names|
        next unless names.verb

        define_method(names.verb) { |value| set(name, renamed_number(name, names.verb, value)) }
      end

      BUILT_IN.each { |verb, why| define_method(verb) { |*, **| note "#{verb}: #{why}" } }

      WITHOUT_MEANING.each do |verb|
        define_method(verb) { |*, **, &_block| note "#{verb}: has no effect in Rondo" }
      end

      HOOKS.merge(WORKER_HOOKS, REFORK_HOOKS).each do |verb, name|
        define_method(verb) do |key = nil, &block|
          add_hook(verb, name, need_block(verb, block), key)
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
        bind Address.tcp_uri(host || default_host, whole_number_of(:port, port))
      end

      # @param host [String] where `port` listens when it names no host
      def set_default_host(host) # rubocop:disable Naming/AccessorMethodName -- Puma's
        return @configuration.port_host = host if host.nil? || (host.is_a?(String) && Address.host?(host))

        fail_here "set_default_host is the host that port listens on, not #{host.inspect}; server_name says what " \
                  "SERVER_NAME and SERVER_PORT are"
      end

      # @return [String] where `port` listens when it names no host
      def default_host
        @configuration.port_host || Address.any_host
      end

      # @param client [Symbol, String, Hash] who REMOTE_ADDR is. :socket: the peer; :localhost: 127.0.0.1; a String:
      #   that; header: the first address in this field; proxy_protocol: :v1: the one of the PROXY header, which every
      #   peer may send, unless `proxy_protocol_from` says otherwise
      def set_remote_address(client = :socket)
        case client
        when :socket then %i[client_field client_address].each { |name| set(name, nil) }
        when :localhost then set(:client_address, "127.0.0.1")
        when String then set(:client_address, client)
        when Hash then proxies_say(client)
        else refuse_client(client)
        end
      end

      # @param methods [Array<String>, Symbol] names; :any
      def supported_http_methods(methods)
        return set(:allowed_methods, nil) if methods == :any

        names = methods.is_a?(Array) && methods.any? && methods.uniq == methods && methods.all?(String)
        names or fail_here "supported_http_methods must be :any, or names of methods, each once, not #{methods.inspect}"
        set(:allowed_methods, methods)
      end

      # @param count [Integer, Float, nil] requests of a connection; Float::INFINITY, 0: no limit; nil: not set
      def max_keep_alive(count)
        return if count.nil?

        count = 0 if count.is_a?(Float) && count.infinite?
        set(:max_keep_alive, core_number(:max_keep_alive, count))
      end

      # Puma's older name of {#max_keep_alive}, which is stronger.
      # @param count [Integer, Float, nil]
      def max_fast_inline(count)
        max_keep_alive(count) unless @configuration.values.key?(:max_keep_alive)
      end

      # Evaluates a block as a part of the file.
      def inject(&block)
        instance_eval(&need_block(:inject, block))
      end

      # Removes the addresses that were bound so far.
      def clear_binds!
        set(:bind, [])
      end

      # @param value [Boolean] false: connections close after each response, as Puma's do then
      def queue_requests(value = true) # rubocop:disable Style/OptionalBooleanParameter
        if !value
          @kept_alive ||= current(:keep_alive) || 1
          set(:keep_alive, 0)
        elsif @kept_alive # the last word counts
          set(:keep_alive, @kept_alive)
          @kept_alive = nil
        end
        note "queue_requests: Rondo always reads a request before a thread takes it" \
             "#{"; connections close after each response" unless value}"
      end

      # @param backend [Symbol, String] :poll and :select keep the server from using a better system call
      def io_selector_backend(backend)
        polls = %w[poll select].include?(backend.to_s)
        set(:poll_only, polls ? 1 : 0) if polls || current(:poll_only)
        note "io_selector_backend: Rondo uses #{current(:poll_only) == 1 ? "poll" : "the best that the system has"}"
      end

      # @param which [Boolean, String] true: sockets that systemd hands over are served besides those of `bind`;
      #   "only": in their place, if there are any; false: only those that `bind` names
      def bind_to_activated_sockets(which = true) # rubocop:disable Style/OptionalBooleanParameter
        unless ["true", "false", "", "only"].include?(which.to_s)
          fail_here "bind_to_activated_sockets must be true, false or \"only\", not #{which.inspect}"
        end
        set(:bind_to_activated_sockets, which.to_s == "only" ? :only : (:besides if which))
      end

      # @param command [String] what a restart executes, in place of the program that runs; its arguments follow.
      #   Puma itself is not executed
      def restart_command(command)
        return set(:restart_command, command.to_s) unless Settings.puma?(command.to_s)

        note "restart_command: #{NOT_PUMA} (#{command})"
      end

      # Logs what all threads do when a stop begins.
      # @param value [Boolean]
      # @param on_force [Boolean] only when its time is over
      def shutdown_debug(value = true, on_force: false) # rubocop:disable Style/OptionalBooleanParameter
        set(:shutdown_debug, value == :on_force || (value && on_force) ? :on_force : (:always if value))
      end

      # @param low [Integer, String]
      # @param high [Integer, String]
      def threads(low, high = low)
        low, high = [low, high].map { |value| whole_number_of(:threads, value) }
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

      # Workers come from a process that has loaded the application, also with `preload_app! false`.
      # @param requests [Integer, String] of the first worker, after which all are forked again, once; 0: never
      def fork_worker(requests = 1000)
        set(:refork_after, checked(Settings::SHELL[:refork_after], :fork_worker, requests))
        set(:preload, true)
      end

      # @param value [Boolean]
      def preload_app!(value = true) # rubocop:disable Style/OptionalBooleanParameter
        set(:preload, value || !current(:refork_after).nil?)
      end

      # @param size [Integer, String] memory of a worker after which it is replaced, as "512m"
      # @param measure [Symbol] :rss, or :pss, where shared pages count in parts
      def max_memory(size, measure: nil)
        memory_measure(measure) if measure
        set(:max_memory, Settings.bytes(size))
      rescue ArgumentError
        fail_here "max_memory must be #{Settings::SIZE_FORMS}, not #{size.inspect}"
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

      # @param secrets [Array<String>] for {Signed}: the first one signs, all of them verify
      def signing_secret(*secrets)
        set(:signing_secret, checked(Settings::SHELL[:signing_secret], :signing_secret, secrets.flatten))
      end

      # NATS carries published messages to other machines.
      # @param url [String] as of {PubSub::Nats#initialize}, which also has the options
      # @param options [Hash] such as jetstream: true, prefix: "shop", required: true
      def nats(url, **options)
        require "rondo/pubsub/nats"
        set(:nats, [url, options].tap { PubSub::Nats.check(url, options) })
      rescue ConfigurationError => e
        fail_here "nats: #{e.message.delete_prefix("nats: ")}"
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

      # @param name [Symbol, String] of a file puma/plugin/NAME.rb of a gem, or tmp_restart
      def plugin(name)
        return set(:tmp_restart, true) if name.to_s == "tmp_restart"

        @configuration.add_plugin(name)
      rescue ConfigurationError => e
        fail_here e.message
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

      # @param name [Symbol] of a setting, or Puma's key of it
      # @param default [Object]
      # @return [Object] what was set so far
      def get(name, default = nil)
        @configuration.values.key?(name) ? current(name) : @options.fetch(name, default)
      end

      # Makes the verb of a setting that has none above.
      # @api private
      # @param row [Settings::Row]
      # @return [void]
      def self.define(row)
        verb = row.verb_name
        return if verb.nil? || public_method_defined?(verb, false)
        return define_method(verb) { |value = true| set(row.name, value) } if row.kind == :switch

        define_method(verb) { |value| set(row.name, checked(row, verb, value)) }
      end
      Settings::ROWS.each { |row| define(row) }

      # Puma's other name of fiber_per_request.
      # @param value [Boolean]
      def clean_thread_locals(value = true) # rubocop:disable Style/OptionalBooleanParameter
        fiber_per_request(value)
      end
      of_server

      private

      def proxies_say(client)
        field, protocol = client.values_at(:header, :proxy_protocol)
        return set(:client_field, field.to_s.downcase.tr("_", "-")) if field.to_s.match?(/\A[\w-]+\z/)

        refuse_client(client) unless protocol.to_s.casecmp?("v1")
        return if current(:proxy_protocol_from)

        set(:proxy_protocol_from, Settings::EVERYBODY)
        set(:proxy_protocol_optional, true)
      end

      def refuse_client(client)
        fail_here "set_remote_address must be :socket, :localhost, an address, header: NAME or proxy_protocol: :v1, " \
                  "not #{client.inspect}"
      end

      def plugins?
        @configuration.plugins.any?
      end

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

      def respond_to_missing?(name, *)
        plugins? && PumaLibrary.verb?(name)
      end

      def method_missing(name, ...)
        return PumaLibrary.call_verb(self, @options, @config, name, ...) if plugins? && PumaLibrary.verb?(name)

        fail_here "unknown setting #{name}#{Server.nearest(name, Verbs.public_instance_methods(false))}"
      end
    end
  end
end
