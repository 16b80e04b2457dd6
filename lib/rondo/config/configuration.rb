# frozen_string_literal: true

# Reads the configuration file, keeps what it sets, and describes its errors. The verbs are in verbs.rb.
# SPDX-License-Identifier: MIT

require "rondo/boot/error"
require "rondo/config/puma_options"
require "rondo/config/verbs"

module Rondo
  # What a configuration file sets.
  # @api private
  class Configuration
    include WithoutValues

    # Verbs of addresses; a Hash is several of them.
    PLACES = %i[listen listen_raw].freeze

    # @return [Hash{Symbol => Array(Object, String)}] values with their source
    attr_reader :values
    # @return [Array<String>] lines for the log at boot
    attr_reader :notes
    # @return [Hash{Symbol => Array<Proc>}] hooks by name
    attr_reader :hooks
    # @return [String, nil]
    attr_reader :path
    # @return [Array<Array(Boolean, Proc)>] blocks for the cluster (true) or for one process (false)
    attr_reader :later
    # @return [Hash{Object => Hash}] what hooks with the same key share
    attr_reader :kept
    # @return [Hash{Symbol => Object}] what plugins and files keep under keys that are no settings
    attr_reader :own
    # @return [Hash{Symbol => Array(Object, String)}] settings that win over the file: those of the command line
    attr_reader :above
    # @return [String, nil] where `port` listens; nil: {Address.any_host}
    attr_accessor :port_host

    # @return [Array<Plugins::Named>] plugins of Puma
    attr_reader :plugins

    # @param environment [String]
    # @return [String, nil] the file that applies when none is named
    def self.find(environment)
      ["config/rondo/#{environment}.rb", "config/rondo.rb",
       "config/puma/#{environment}.rb", "config/puma.rb"].find { |path| File.file?(path) }
    end

    # @param path [String, nil] nil for no file
    # @param above [Hash{Symbol => Array(Object, String)}] settings that win over the file, for `@config.options`
    # @param port_host [String, nil] where `port` listens, if the file does not say it
    # @param plugins [Array<String>] plugins of Puma besides those of the file
    # @raise [ConfigurationError] one line
    def initialize(path = nil, above: {}, port_host: nil, plugins: [])
      @path = path
      @above = above
      @port_host = port_host
      @own = {}
      @plugins = []
      @unasked = []
      @values = {}
      @notes = []
      @hooks = Hash.new { |hash, name| hash[name] = [] }
      @later = []
      @kept = Hash.new { |hash, key| hash[key] = {} }
      plugins.each { |name| add_plugin(name) }
      load_file(path) if path
      configure_plugins
    end

    # Sets what a program gives in place of a file.
    # @param source [String] its name in boot lines
    # @param settings [Hash{Symbol => Object}] verbs with their values; an Array is several values
    # @yield further verbs
    # @return [void]
    # @raise [ConfigurationError] one line
    def begin_with(source, settings, &block)
      @source = source
      verbs = Verbs.new(self)
      settings.each do |verb, value|
        set_verb(verbs, verb, value)
      rescue ArgumentError => e
        raise ConfigurationError, "#{source}: #{verb}: #{e.message}"
      end
      verbs.instance_eval(&block) if block
      configure_plugins
    end

    # @param name [Symbol, String] of a plugin of Puma
    # @return [void]
    # @raise [ConfigurationError] half a line
    def add_plugin(name)
      require "rondo/puma/plugins"
      return if @plugins.any? { |plugin| plugin.name == name.to_s }

      @plugins << Plugins.read(name)
      @unasked << @plugins.last
    end

    # @return [String] without the values, too
    def inspect
      "#<#{self.class} #{@path}>"
    end

    # @return [PumaOptions] all settings under Puma's keys
    def options
      @options ||= PumaOptions.new(self, all: true)
    end

    alias _options options # Puma's name of it since version 7

    # @return [String] the environment, as `@config.environment` of a configuration file asks for it
    def environment
      options[:environment].to_s
    end

    # @param message [String] why a line of the file is refused
    # @raise [ConfigurationError] always, with the line
    def refuse(message)
      Verbs.new(self).send(:fail_here, message)
    end

    # Evaluates the blocks `cluster` or `single`.
    # @param cluster [Boolean] whether there are workers
    # @return [self]
    # @raise [ConfigurationError] one line
    def choose(cluster)
      verbs = Verbs.new(self)
      guard(@path.to_s) do
        @later.each { |wanted, block| verbs.instance_eval(&block) if wanted == cluster }
      end
      configure_plugins
      self
    end

    # @param name [Symbol] of a setting
    # @param value [Object]
    # @return [void]
    def set(name, value)
      @values[name] = [value, @path ? File.basename(@path) : @source || "configuration"]
    end

    private

    # A plugin may have verbs of its own to say, once the file has said its.
    def configure_plugins
      while (plugin = @unasked.shift)
        next unless plugin.object.respond_to?(:config)

        Plugins.guard("plugin #{plugin.name}, config") { plugin.object.config(Verbs.new(self)) }
      end
    end

    def set_verb(verbs, verb, value)
      values = value.is_a?(Array) ? value : [value]
      return values.each { |address| verbs.bind(address) } if verb == :bind
      return verbs.public_send(verb, *values) unless value.is_a?(Hash) && PLACES.include?(verb)

      value.each { |address, object| verbs.public_send(verb, address, object) }
    end

    def load_file(path)
      text = read(path)
      offer_puma if text.include?("Puma")
      guard(path) { EVALUATE.call(Verbs.new(self), text, path) }
    end

    # The file may ask Puma.cli_config for what was set so far, or for a version.
    def offer_puma
      require "rondo/puma/library"
      PumaLibrary.offer
      PumaLibrary.configuration = self
    end

    def read(path)
      File.read(path)
    rescue SystemCallError => e
      raise ConfigurationError, "cannot read #{path}: #{SystemCallError.new(nil, e.errno).message}"
    end

    def guard(path)
      yield
    rescue SyntaxError => e
      raise ConfigurationError, first_line(e)
    rescue ConfigurationError, SignalException
      raise
    rescue Exception => e # rubocop:disable Lint/RescueException
      raise ConfigurationError, "#{where(e, path)}: #{BootError.words(e)}"
    end

    def first_line(error)
      error.message.lines.first.to_s.chomp
    end

    def where(error, path)
      at = Array(error.backtrace).find { |line| line.start_with?("#{path}:") }
      at ? at[/\A.*?:\d+/] : path
    end
  end
end

# It is outside the module, so that `Logger` in a configuration file is Ruby's and not Rondo's.
Rondo::Configuration::EVALUATE = ->(*given) { given[0].instance_eval(given[1], given[2], 1) }
