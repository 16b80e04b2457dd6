# frozen_string_literal: true

# Reads the configuration file, keeps what it sets, and describes its errors. The verbs are in verbs.rb.
# SPDX-License-Identifier: MIT

require "rondo/boot/error"
require "rondo/config/verbs"

module Rondo
  # What a configuration file sets.
  class Configuration
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

    # @param environment [String]
    # @return [String, nil] the file that applies when none is named
    def self.find(environment)
      ["config/rondo/#{environment}.rb", "config/rondo.rb",
       "config/puma/#{environment}.rb", "config/puma.rb"].find { |path| File.file?(path) }
    end

    # @param path [String, nil] nil for no file
    # @raise [ConfigurationError] one line
    def initialize(path = nil)
      @path = path
      @values = {}
      @notes = []
      @hooks = Hash.new { |hash, name| hash[name] = [] }
      @later = []
      @kept = Hash.new { |hash, key| hash[key] = {} }
      load_file(path) if path
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
    end

    # @return [Hash{Symbol => Proc}] what {Server#initialize} calls in each application thread
    def thread_hooks
      { thread_start: :before_thread_start, thread_exit: :before_thread_exit }.filter_map do |option, name|
        [option, -> { hooks[name].each(&:call) }] if hooks.key?(name)
      end.to_h
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
      self
    end

    # @param name [Symbol] of a setting
    # @param value [Object]
    # @return [void]
    def set(name, value)
      @values[name] = [value, @path ? File.basename(@path) : @source || "configuration"]
    end

    private

    def set_verb(verbs, verb, value)
      values = value.is_a?(Array) ? value : [value]
      return values.each { |address| verbs.bind(address) } if verb == :bind
      return verbs.public_send(verb, *values) unless value.is_a?(Hash) && PLACES.include?(verb)

      value.each { |address, object| verbs.public_send(verb, address, object) }
    end

    def load_file(path)
      text = read(path)
      guard(path) { EVALUATE.call(Verbs.new(self), text, path) }
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
