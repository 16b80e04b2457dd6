# frozen_string_literal: true

# How the value of a setting is chosen: command line, then configuration file, then environment, then
# default. The settings of the shell are the rows of options.rb, those of the core come from the
# extension.
# SPDX-License-Identifier: MIT

require "rondo/config/options"

module Rondo
  # The tables, and resolved values that know where they came from.
  # @api private
  module Settings
    # @param row [Hash{Symbol => Object}] of CORE
    # @return [Array<Symbol>, nil] names of a setting's numbers, where they have names
    def self.choices(row)
      row[:unit].split("|").map(&:to_sym) if row[:unit].include?("|")
    end

    # @param name [Symbol] of a setting of the core
    # @param value [Integer, String, Symbol] a number, a size, a time with its unit, or the name of a number
    # @return [Integer] what it is set to
    # @raise [KeyError] the core has no such setting
    # @raise [ArgumentError, TypeError] the value is neither
    def self.core_value(name, value)
      row = CORE.fetch(name)
      return bytes(value) if row[:unit] == "bytes"
      return (seconds(value) * 1000).round if row[:unit] == "ms" && value.to_s.match?(/[a-z]\s*\z/i)

      choices(row)&.index(value.to_s.to_sym) || Integer(value)
    end

    # @param env [Hash{String => String}] the variables
    # @return [Hash{Symbol => Array(Object, String)}] what they say, and which of them
    # @raise [ConfigurationError]
    def self.from_environment(env = ENV)
      CORE_NAMES.merge(SHELL).each_with_object({}) do |(name, row), found|
        variable, text = first_set(row.env, env)
        next unless variable

        value = CORE.key?(name) ? core_number(name, variable, text) : KINDS.fetch(row.kind).variable(row, text)
        found[name] = [value, variable]
      rescue Kind::Refused => e
        raise ConfigurationError, "#{variable} #{e.message}"
      end
    end

    # The environment decides which configuration file is read, so it comes from every source but the file.
    # @param typed [Hash{Symbol => Array(Object, String)}] what was typed
    # @param offered [Hash{Symbol => Array(Object, String)}] used in place of a default
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
      number = Integer(value, 10)
      number *= 1000 if name.end_with?("_ms")
      row = CORE.fetch(name)
      return number.clamp(1, row[:max]) if name == :min_threads && number.zero?
      return number if number.between?(row[:min], row[:max])

      raise ConfigurationError, "#{variable} must be between #{row[:min]} and #{row[:max]}, not #{value}"
    rescue ArgumentError
      raise ConfigurationError, "#{variable} must be a number, not #{value.inspect}"
    end
    private_class_method :core_number

    # @return [String] as an option takes it, times in seconds
    def self.default(name)
      row = CORE[name] or return SHELL.fetch(name).default.to_s
      case row[:unit]
      when "bytes" then size(row[:default])
      when "ms" then format("%g", row[:default].fdiv(1000))
      else row[:default].to_s
      end
    end

    # Given where standard output is the program's own: all lines of the server go to standard error.
    APART = :lines_on_standard_error

    # Every peer, in the form of trusted_proxies.
    EVERYBODY = ["0.0.0.0/0", "::/0", "unix"].freeze

    # Values by name, each with its source.
    class Resolved
      # @param layers [Array<Hash{Symbol => Array(Object, String)}>] strongest first
      def initialize(*layers)
        @values = layers.reverse.reduce({}) { |all, layer| all.merge(layer) }
      end

      # @return [Hash{Symbol => Array(Object, String)}] what was set, with its source
      attr_reader :values

      # @param name [Symbol] of a setting
      # @return [Object] the value, or the default
      # @raise [KeyError] there is no such setting
      def [](name)
        return @values[name].first if @values.key?(name)

        SHELL.key?(name) ? SHELL[name].default : CORE.fetch(name)[:default]
      end

      # @param name [Symbol]
      # @return [Boolean] whether a source has set it
      def given?(name)
        @values.key?(name)
      end

      # @param name [Symbol]
      # @return [String] where the value came from
      def source(name)
        @values.key?(name) ? @values[name].last : "default"
      end

      # @return [Hash{Symbol => Object}] the settings of the core that were given; min_threads is
      #   lowered to max_threads
      def core
        given = @values.slice(*CORE.keys).transform_values(&:first)
        given[:min_threads] = self[:max_threads] if self[:min_threads] > self[:max_threads]
        given
      end

      # @return [Logger]
      # @param quiet [Boolean] whatever the settings say
      def logger(quiet: false)
        Logger.new(io: given?(APART) ? $stderr : nil, custom: self[:custom_logger], formatter: self[:log_formatter],
                   quiet: quiet || self[:quiet], silent: self[:silent], json: json?,
                   time: self[:log_time])
      end

      # @return [String, nil] the folder whose files are served. The first call makes the path absolute, before the
      #   application can change the working directory.
      # @raise [ConfigurationError] the folder does not exist or cannot be read
      def public_folder
        return if self[:public].nil?

        @public_folder ||= StaticFolder.find(self[:public])
      end

      # @return [Array<String>, nil] the folders of X-Sendfile, in the same way; nil: {#public_folder}
      # @raise [ConfigurationError]
      def x_sendfile_roots
        @x_sendfile_roots ||= self[:x_sendfile_root]&.map { |path| StaticFolder.find(path, "x_sendfile_root") }
      end

      # Checks both folders before anything else is done.
      # @return [void]
      # @raise [ConfigurationError]
      def find_folders
        public_folder
        x_sendfile_roots
      end

      # @return [Hash{Symbol => Object}] what {Serving#initialize} takes
      def stop_options
        { drain_ms: self[:drain_timeout_ms], debug: self[:shutdown_debug], drain: self[:drain_on_shutdown] }
      end

      # @param log [Logger]
      # @return [Hash{Symbol => Object}] what {Server#initialize} takes
      def server_options(log)
        options = SHELL.select { |_, row| row.server }.to_h { |name, _| [name, self[name]] }
        core.merge(options, clients(options), environment: self[:environment].to_s, log: log, public: public_folder,
                                              needs_address: self[:bind] != false, x_sendfile_roots: x_sendfile_roots,
                                              request_log: request_log, request_log_format: json? ? :json : :common)
      end

      # Who names the client in a field of its own: without a list every peer, as for Puma.
      def clients(options)
        trusted = EVERYBODY if options[:client_field] && [*options[:trusted_proxies]].empty?
        { trusted_proxies: trusted || options[:trusted_proxies],
          fiber_each: options[:fiber_each] && self[:fibers].zero? }
      end
      private :clients

      # @return [IO, nil]
      def request_log
        (self[:request_log_output].to_s == "stderr" ? $stderr : $stdout) if self[:log_requests]
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
