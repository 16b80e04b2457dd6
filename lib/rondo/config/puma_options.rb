# frozen_string_literal: true

# Settings under the keys that Puma has for them: configuration files and plugins write `@options[:workers] = 2`, and
# read `@config.options[:workers]`. A key of Puma is written by its verb (verbs.rb), so the value is checked there.
# A key that neither knows belongs to a plugin: it is kept as it is.
# SPDX-License-Identifier: MIT

require "rondo/config/settings"
require "rondo/config/worker_count"

module Rondo
  # What shows nothing of its values, whoever prints it or writes it as JSON: some are secrets. Where ActiveSupport is
  # loaded, its JSON of any object would be that of all its instance variables.
  # @api private
  module WithoutValues
    # @return [String]
    def inspect
      "#<#{self.class}>"
    end

    # @return [String]
    def as_json(*)
      inspect
    end

    # @return [String]
    def to_json(*given)
      inspect.to_json(*given)
    end
  end

  class Configuration
    # Behaves as a Hash with Symbols as keys, and as the three in one of Puma's `Puma::UserFileDefaultOptions`.
    class PumaOptions
      include WithoutValues

      # A key of Puma => the setting, where they differ.
      SETTINGS = { binds: :bind, state: :state_path, preload_app: :preload, control_auth_token: :control_token,
                   first_data_timeout: :head_timeout_ms, persistent_timeout: :keep_alive_timeout_ms,
                   force_shutdown_after: :drain_timeout_ms, enable_keep_alives: :keep_alive,
                   http_content_length_limit: :max_body_bytes, rack_url_scheme: :url_scheme,
                   supported_http_methods: :allowed_methods, fiber_per_request: :fiber_each,
                   restart_cmd: :restart_command, fork_worker: :refork_after }.freeze
      # A key of Puma => the verb, where they differ.
      VERBS = { state: :state_path, preload_app: :preload_app!, default_host: :set_default_host,
                restart_cmd: :restart_command }.freeze
      # Keys whose values are those of a setting as it is.
      PLAIN = %i[binds control_url control_auth_token control_data_only redirect_stdout redirect_stderr
                 redirect_append].freeze
      # Read as it is in Puma, and set by a verb alone.
      BLOCKS = %i[single cluster config_files remote_address before_restart before_fork before_worker_boot
                  before_worker_shutdown before_worker_fork after_worker_fork after_worker_shutdown before_refork
                  after_refork before_thread_start before_thread_exit out_of_band].freeze
      # What Puma has in place of the names of a choice.
      CHOICES = { bind_to_activated_sockets: { only: "only", besides: true }, shutdown_debug: { always: true } }.freeze
      # `@options[:pidfile] = false` means none.
      FILES = %i[pidfile state state_path].freeze
      private_constant :SETTINGS, :VERBS, :PLAIN, :BLOCKS, :CHOICES, :FILES

      # @param configuration [Configuration]
      # @param all [Boolean] what no file sets comes from the environment, or is the default
      def initialize(configuration, all: false)
        @configuration = configuration
        @all = all
      end

      # @param key [Symbol, String]
      # @return [Object, nil] in Puma's form: seconds, Integers, true and false
      def [](key)
        fetch(key, nil)
      end

      # @param key [Symbol, String]
      # @param default [Object]
      # @yield [key] makes the default
      # @return [Object]
      # @raise [KeyError] it is not set, and there is no default
      def fetch(key, *default)
        key = key.to_sym
        return @configuration.own[key] if @configuration.own.key?(key)

        setting = SETTINGS.fetch(key, key)
        values = resolved
        return of_puma(setting, values) if @configuration.values.key?(setting) || (@all && known?(setting))
        return yield(key) if block_given?

        default.empty? ? raise(KeyError.new("key not found: #{key.inspect}", receiver: self, key: key)) : default.first
      end

      # @param key [Symbol, String]
      # @param value [Object]
      # @return [void]
      # @raise [ConfigurationError] as the verb
      def store(key, value)
        key = key.to_sym
        refuse_what_wins(key) if @all
        if PLAIN.include?(key) then @configuration.set(SETTINGS.fetch(key, key), value)
        elsif BLOCKS.include?(key) then @configuration.refuse("@options[:#{key}] cannot be set; use the verb #{key}")
        elsif Verbs.of_server.include?(VERBS.fetch(key, key)) then by_verb(key, value)
        else @configuration.own[key] = value
        end
      end
      alias []= store

      # @param key [Symbol, String]
      # @return [Boolean]
      def key?(key)
        @configuration.own.key?(key.to_sym) || @configuration.values.key?(SETTINGS.fetch(key.to_sym, key.to_sym))
      end
      alias include? key?
      alias has_key? key?
      alias member? key?

      # @param others [Hash{Symbol => Object}]
      # @return [self]
      def merge!(others)
        others.each { |key, value| self[key] = value }
        self
      end
      alias update merge!

      # @param key [Symbol, String]
      # @return [Array<Object>] all values of a key that may have several
      def all_of(key)
        [*self[key]].compact
      end

      # @return [Hash{Symbol => Object}] everything that is set, under Puma's keys
      def to_h
        keys = @configuration.values.keys.map { |name| SETTINGS.key(name) || name }
        (keys + @configuration.own.keys).to_h { |key| [key, self[key]] }
      end
      alias final_options to_h

      # @return [self]
      def user_options
        self
      end
      alias file_options user_options
      alias default_options user_options

      private

      def resolved
        return Settings::Resolved.new(@configuration.values) unless @all

        Settings::Resolved.new(@configuration.above, @configuration.values, Settings.from_environment)
      end

      # In Puma these options are those of the command line.
      def refuse_what_wins(key)
        source = @configuration.above.dig(SETTINGS.fetch(key, key), 1) or return
        @configuration.refuse("options[:#{key}] cannot be set here: the #{source} sets it")
      end

      def known?(setting)
        Settings::SHELL.key?(setting) || Settings::CORE.key?(setting)
      end

      def by_verb(key, value)
        if value.nil? || (value == false && FILES.include?(key))
          @configuration.values.delete(SETTINGS.fetch(key, key))
        else
          Verbs.new(@configuration).public_send(VERBS.fetch(key, key), value)
        end
      end

      def of_puma(setting, values)
        return WorkerCount.new(values).number if setting == :workers

        value = values[setting]
        return CHOICES.fetch(setting, {}).fetch(value, value) unless Settings::CORE.key?(setting)
        return seconds(value) if setting.end_with?("_ms")

        Settings::CORE[setting][:unit] == "bool" ? value == 1 : value
      end

      def seconds(milliseconds)
        (milliseconds % 1000).zero? ? milliseconds / 1000 : milliseconds / 1000.0
      end
    end
  end
end
