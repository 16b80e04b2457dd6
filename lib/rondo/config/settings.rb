# frozen_string_literal: true

# Every setting there is: those of the core (from the extension) and those of the Ruby side, and
# how a value is chosen: command line, then configuration file, then environment, then default.
# docs/CONFIGURATION.md is generated from these tables.
# SPDX-License-Identifier: MIT

require "rondo"

module Rondo
  # The tables, and resolved values that know where they came from.
  module Settings
    # A setting.
    #
    # @!attribute [r] default
    #   @return [Object]
    # @!attribute [r] unit
    #   @return [String]
    # @!attribute [r] doc
    #   @return [String] what it means
    # @!attribute [r] flag
    #   @return [String, nil] on the command line
    # @!attribute [r] env
    #   @return [Array<String>] environment variables, first one set wins
    Row = Struct.new(:default, :unit, :doc, :flag, :env, keyword_init: true)

    # @return [Row]
    def self.row(default, unit, doc, flag: nil, env: [])
      Row.new(default: default, unit: unit, doc: doc, flag: flag, env: env).freeze
    end
    private_class_method :row

    # @param row [Hash{Symbol => Object}] of CORE
    # @return [Array<Symbol>, nil] names of a setting's numbers, where they have names
    def self.choices(row)
      row[:unit].split("|").map(&:to_sym) if row[:unit].include?("|")
    end

    # @param name [Symbol] of a setting of the core
    # @param value [Integer, String, Symbol] a number, a size, or the name of a number
    # @return [Integer] what it is set to
    # @raise [KeyError] the core has no such setting
    # @raise [ArgumentError, TypeError] the value is none of these
    def self.core_value(name, value)
      row = CORE.fetch(name)
      return bytes(value) if row[:unit] == "bytes"

      choices(row)&.index(value.to_s.to_sym) || Integer(value)
    end

    SHELL = {
      environment: row("development", "name", "decides which backtraces clients see and which " \
                                              "configuration file is read",
                       flag: "-e, --environment NAME", env: %w[APP_ENV RACK_ENV RAILS_ENV]),
      rackup: row("config.ru", "path", "the application's file; also the last argument"),
      public: row(nil, "path", "folder whose files are served without Ruby; without an application only they are",
                  flag: "--public DIR, -www DIR"),
      x_sendfile_root: row(nil, "paths", "folders below which the application may name files by X-Sendfile or " \
                                         "X-Accel-Redirect; that of public without it",
                           flag: "--x-sendfile-root DIR"),
      sendfile_type: row(nil, "name", "which of the two Rack::Sendfile uses: X-Sendfile or X-Accel-Redirect"),
      bind: row(nil, "URIs", "addresses: tcp://HOST:PORT, unix:///PATH; without any, port on all " \
                             "interfaces",
                flag: "-b, --bind URI"),
      port: row(9292, "port", "port of the address served when nothing is bound",
                flag: "-p, --port PORT", env: %w[PORT]),
      host: row(nil, "host", "host of the address served when nothing is bound; all interfaces " \
                             "without one", env: %w[HOST BINDING]),
      workers: row(0, "count", "worker processes; 0 serves with one process and no master; auto: as many as " \
                               "there are CPUs for this process",
                   flag: "-w, --workers N", env: %w[WEB_CONCURRENCY]),
      preload: row(true, "bool", "load the application once, before workers are forked, instead of in each of them",
                   flag: "--preload"),
      worker_timeout: row(60, "s", "a worker without a sign of life for so long is killed and replaced; 0 for never"),
      worker_boot_timeout: row(60, "s", "time for a worker from its fork until it is ready; 0 for no limit"),
      worker_shutdown_timeout: row(30, "s", "time for a worker that is told to stop; then it is killed"),
      worker_check_interval: row(5, "s", "time between two signs of life of a worker, and two looks at its lifetime"),
      mold_boot_timeout: row(300, "s", "time for loading the application before workers are forked; 0 for no limit"),
      worker_culling_strategy: row(:youngest, "name", "which worker ends when there is to be one less: youngest or " \
                                                      "oldest"),
      max_requests: row(0, "count", "a worker is replaced after so many requests; 0 for never"),
      max_memory: row(0, "bytes", "a worker is replaced when it has so much memory; 0 for never"),
      memory_measure: row(:rss, "name", "what max_memory measures: rss, or pss, where shared pages count in parts"),
      max_age: row(0, "s", "a worker is replaced when it is so old; 0 for never"),
      recycle_jitter: row(10, "percent", "how much lower a worker's own limits are at most, so that they do " \
                                         "not all end together"),
      directory: row(nil, "path", "where to go before anything else", flag: "--dir DIR"),
      pidfile: row(nil, "path", "written at boot, removed at the end", flag: "--pidfile FILE",
                                                                       env: %w[PIDFILE]),
      state_path: row(nil, "path", "pid and addresses as YAML, for tools", flag: "-S, --state FILE"),
      control_url: row(nil, "URI", "where the control server listens: tcp://HOST:PORT, unix:///PATH, or " \
                                   "auto for a socket of its own",
                       flag: "--control-url URI"),
      control_token: row(nil, "text", "what its clients have to show; a random one is written to the " \
                                      "state file where none is given, none for nobody needs one",
                         flag: "--control-token TOKEN"),
      control_data_only: row(false, "bool", "the control server only shows, it does nothing"),
      tag: row(nil, "text", "name of this server in the process list; its folder's without it", flag: "--tag NAME"),
      quiet: row(false, "bool", "no boot lines", flag: "-q, --quiet"),
      silent: row(false, "bool", "nothing but errors", flag: "-s, --silent"),
      log_requests: row(false, "bool", "a line for each request on standard output, but not for those that the " \
                                       "static folder answers",
                        flag: "-v, --log-requests"),
      log_format: row(:common, "name", "of request lines and log lines: common or json"),
      log_formatter: row(nil, "block", "called with each log line, answers what is written"),
      custom_logger: row(nil, "object", "answers info, warn and error, or write; gets the log lines"),
      redirect_stdout: row(nil, "path", "file for standard output", flag: "--redirect-stdout FILE"),
      redirect_stderr: row(nil, "path", "file for standard error", flag: "--redirect-stderr FILE"),
      redirect_append: row(false, "bool", "append to the redirect files instead of emptying them",
                           flag: "--redirect-append"),
      trusted_proxies: row([].freeze, "networks", "peers that may say who the client is, in the " \
                                                  "fields that trusted_proxy_fields names; unix: any that " \
                                                  "comes through a Unix socket"),
      proxy_protocol_from: row([].freeze, "networks", "peers whose connections begin with a PROXY " \
                                                      "protocol header, version 1 or 2; unix: any that comes " \
                                                      "through a Unix socket"),
      url_scheme: row(nil, "name", "rack.url_scheme whatever the connection says"),
      default_host: row(nil, "host:port", "SERVER_NAME and SERVER_PORT of requests without Host"),
      allowed_origins: row(nil, "origins", "whose pages may open a WebSocket: :same, https://www.example.com, " \
                                           "https://*.example.com, or a block that is called with env; " \
                                           "everybody's without it"),
      lowlevel_error_handler: row(nil, "block", "called with error, env and status when the " \
                                                "application raises; answers a response"),
      raise_exception_on_sigterm: row(true, "bool", "end with SIGTERM's own status after TERM"),
      redis_url: row(nil, "URL", "Redis that carries what is published to other machines: " \
                                 "redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, unix:///PATH",
                     flag: "-r, --redis URL", env: %w[RONDO_REDIS_URL REDIS_URL]),
      redis_required: row(false, "bool", "do not start without that Redis, instead of trying again and again"),
      pubsub_engine: row(nil, "block",
                         "makes the default engine of pub/sub, in the process that was started: the " \
                         "master, if there is one"),
      tmp_restart: row(false, "bool", "restart when tmp/restart.txt is touched")
    }.freeze

    # Environment variables of core settings; what is given in seconds ends in _ms here.
    CORE_VARIABLES = {
      max_threads: %w[RAILS_MAX_THREADS MAX_THREADS PUMA_MAX_THREADS],
      min_threads: %w[MIN_THREADS PUMA_MIN_THREADS],
      keep_alive_timeout_ms: %w[PUMA_PERSISTENT_TIMEOUT]
    }.freeze

    # @param env [Hash{String => String}] the variables
    # @return [Hash{Symbol => Array(Object, String)}] what they say, and which of them
    # @raise [ConfigurationError]
    def self.from_environment(env = ENV)
      shell = SHELL.each_with_object({}) do |(name, row), found|
        variable, value = first_set(row.env, env)
        next unless variable

        found[name] = [row.default.is_a?(Integer) ? number(variable, value) : value, variable]
      end
      CORE_VARIABLES.each_with_object(shell) do |(name, variables), found|
        variable, value = first_set(variables, env)
        next unless variable

        found[name] = [core_number(name, variable, value), variable]
      end
    end

    # Which configuration file is read hangs on the environment, so this asks everybody but the file.
    # @param typed [Hash{Symbol => Array(Object, String)}] what somebody typed
    # @param offered [Hash{Symbol => Array(Object, String)}] what stands in for a default
    # @param env [Hash{String => String}] the variables
    # @return [String]
    def self.environment(typed, offered = {}, env: ENV)
      Resolved.new(typed, from_environment(env), offered)[:environment].to_s
    end

    def self.first_set(variables, env)
      variable = variables.find { |key| !env[key].to_s.strip.empty? }
      [variable, env[variable].strip] if variable
    end
    private_class_method :first_set

    def self.core_number(name, variable, value)
      number = number(variable, value)
      number *= 1000 if name.end_with?("_ms")
      row = CORE.fetch(name)
      return number.clamp(1, row[:max]) if name == :min_threads && number.zero?
      return number if number.between?(row[:min], row[:max])

      raise ConfigurationError, "#{variable} must be between #{row[:min]} and #{row[:max]}, not #{value}"
    end
    private_class_method :core_number

    SIZES = { "g" => 30, "m" => 20, "k" => 10 }.freeze
    private_constant :SIZES

    # @param text [String, Integer] "64", "64k", "10m", "1g"
    # @return [Integer] bytes
    # @raise [ArgumentError]
    def self.bytes(text)
      return text if text.is_a?(Integer)

      match = /\A(\d+)([kmg]?)b?\z/i.match(text.to_s.strip) or raise ArgumentError, "no size: #{text}"
      match[1].to_i << SIZES.fetch(match[2].downcase, 0)
    end

    # @param bytes [Integer]
    # @return [String] "64", "64k", "10m", "1g"
    def self.size(bytes)
      letter, shift = SIZES.find { |_, bits| bytes >= 1 << bits && (bytes % (1 << bits)).zero? }
      shift ? "#{bytes >> shift}#{letter}" : bytes.to_s
    end

    # @return [String] as an option takes it, times in seconds
    def self.default(name)
      row = CORE[name] or return SHELL.fetch(name).default.to_s
      case row[:unit]
      when "bytes" then size(row[:default])
      when "ms" then format("%g", row[:default].fdiv(1000))
      else row[:default].to_s
      end
    end

    def self.number(variable, value)
      return value if variable == "WEB_CONCURRENCY" && value == "auto"

      Integer(value, 10)
    rescue ArgumentError
      raise ConfigurationError, "#{variable} must be a number, not #{value.inspect}"
    end
    private_class_method :number

    # Values by name, each with its source.
    class Resolved
      # @param layers [Array<Hash{Symbol => Array(Object, String)}>] strongest first
      def initialize(*layers)
        @values = layers.reverse.reduce({}) { |all, layer| all.merge(layer) }
      end

      # @param name [Symbol] of a setting
      # @return [Object] the value, or the default
      # @raise [KeyError] there is no such setting
      def [](name)
        return @values[name].first if @values.key?(name)

        SHELL.key?(name) ? SHELL[name].default : CORE.fetch(name)[:default]
      end

      # @param name [Symbol]
      # @return [Boolean] whether anything but the default was said
      def given?(name)
        @values.key?(name)
      end

      # @param name [Symbol]
      # @return [String] where the value came from
      def source(name)
        @values.key?(name) ? @values[name].last : "default"
      end

      # @return [Hash{Symbol => Object}] the settings of the core that were given, with no more
      #   threads at least than at most
      def core
        given = @values.slice(*CORE.keys).transform_values(&:first)
        given[:min_threads] = self[:max_threads] if self[:min_threads] > self[:max_threads]
        given
      end

      # @return [Logger]
      # @param quiet [Boolean] whatever the settings say
      def logger(quiet: false)
        Logger.new(custom: self[:custom_logger], formatter: self[:log_formatter],
                   quiet: quiet || self[:quiet], silent: self[:silent], json: json?)
      end

      # @return [String, nil] the folder whose files are served, by the way that leads there from where the server
      #   stands when this is asked first: before the application may go elsewhere
      # @raise [ConfigurationError] there is none, or nothing in it can be read
      def public_folder
        return if self[:public].nil?

        @public_folder ||= StaticFolder.find(self[:public])
      end

      # @return [Array<String>, nil] the folders of X-Sendfile, from there as well; nil: that of {#public_folder}
      # @raise [ConfigurationError]
      def x_sendfile_roots
        @x_sendfile_roots ||= self[:x_sendfile_root]&.map { |path| StaticFolder.find(path, "x_sendfile_root") }
      end

      # Both, before anything else.
      # @return [void]
      # @raise [ConfigurationError]
      def find_folders
        public_folder
        x_sendfile_roots
      end

      # @param log [Logger]
      # @return [Hash{Symbol => Object}] what {Server#initialize} takes
      def server_options(log)
        options = %i[lowlevel_error_handler trusted_proxies proxy_protocol_from url_scheme
                     default_host allowed_origins sendfile_type].to_h { |name| [name, self[name]] }
        core.merge(options, environment: self[:environment].to_s, log: log, public: public_folder,
                            x_sendfile_roots: x_sendfile_roots, request_log: self[:log_requests] ? $stdout : nil,
                            request_log_format: json? ? :json : :common)
      end

      # @return [Boolean]
      # @raise [ConfigurationError] the format is neither common nor json
      def json?
        format = self[:log_format].to_s
        return format == "json" if %w[common json].include?(format)

        raise ConfigurationError, "log_format must be common or json, not #{format.inspect}"
      end
    end
  end
end
