# frozen_string_literal: true

# The module Puma in a process of this server: that of the gem puma if the bundle has that gem, else ours (module.rb),
# loaded when somebody asks for it. What both say about the server comes from here. docs/PUMA.md is the manual.
# SPDX-License-Identifier: MIT

require "rondo/puma/gem"
require "rondo/puma/statistics"

module Rondo
  # Finds the module Puma, and tells it about this process.
  # @api private
  module PumaLibrary
    # Last on the load path: `require "puma"` and its parts find ours there if no gem has them.
    FOLDER = File.expand_path("library", __dir__)
    # Asked by gems as Puma::Server.current.
    Current = Module.new do
      # @return [Object, nil] the server of this process, on every thread of it
      def current
        super || PumaLibrary.current
      end
    end
    private_constant :Current

    class << self
      # @return [PumaStatistics, nil] nil in a process that is not of a server
      attr_reader :statistics
      # @return [Configuration, nil]
      attr_accessor :configuration
      # @return [Object, nil] the server that applications find as Puma::Server.current
      attr_reader :current

      # Before the application is loaded: it may ask for Puma. Nothing is loaded before it does.
      # @return [void]
      def offer
        return if @offered || Object.const_defined?(:Puma) || PumaGem.there?

        @offered = true
        $LOAD_PATH << FOLDER
        Object.autoload(:Puma, File.join(__dir__, "module.rb"))
      end

      # For plugins.
      # @return [void]
      # @raise [LoadError]
      def load
        offer
        return require "rondo/puma/module" unless PumaGem.there?

        %w[puma puma/events puma/dsl puma/plugin].each { |name| require name }
      end

      # After the application was loaded: what this process knows of the server.
      # @param board [Scoreboard, nil]
      # @param configuration [Configuration]
      # @param cluster [Boolean]
      # @param server [Server, nil] that runs here
      # @param serving [Serving, nil]
      # @return [void]
      def describe(configuration, board: nil, cluster: false, server: nil, serving: nil)
        @configuration = configuration
        @described = server
        @statistics = PumaStatistics.new(board, server: server, cluster: cluster)
        attach_gem if of_gem?
        return unless server && (of_gem? || Object.const_defined?(:Puma))

        require "rondo/puma/current_server"
        @current = CurrentServer.new(server, serving, configuration)
      end

      # A server in a process that goes on has ended.
      # @param server [Server]
      # @return [void]
      def forget(server)
        @current = @statistics = @configuration = nil if @described.equal?(server)
      end

      # What `options` have then, also where the token is a random one.
      # @param configuration [Configuration]
      # @param url [String, nil] of the control server; nil or "": there is none
      # @param token [String, nil] nil or "": it needs none
      # @return [void]
      def note_control(configuration, url, token)
        Rondo.control = url.to_s.empty? ? nil : [url.dup.freeze, (token.dup.freeze unless token.to_s.empty?)].freeze
        return %i[control_url control_auth_token].each { |key| configuration.own.delete(key) } if url.to_s.empty?

        configuration.own.update(control_url: url, control_auth_token: token.to_s.empty? ? "none" : token)
      end

      # @return [PumaStatistics]
      # @raise [Error] no server runs in this process
      def known_statistics
        @statistics or raise Error, "Puma.stats: no server runs in this process"
      end

      # @param urls [Array<String>] where something listens
      # @return [Array<Integer>] its ports
      def ports(urls)
        urls.filter_map { |url| url[/:(\d+)\z/, 1]&.to_i }
      end

      # @return [Boolean] whether somebody has asked for the module, the gem's or ours
      def loaded?
        Object.const_defined?(:Puma) && !Object.autoload?(:Puma)
      end

      # @return [Boolean] whether the gem's module is loaded
      def of_gem?
        loaded? && ::Puma.respond_to?(:stats_object=) &&
          !::Puma.const_defined?(:OF_RONDO)
      end

      # @param name [Symbol]
      # @return [Boolean] whether a plugin has added this verb to the Puma::DSL of the gem
      def verb?(name)
        of_gem? && ::Puma.const_defined?(:DSL) && ::Puma::DSL.public_method_defined?(name, false)
      end

      # Calls such a verb with the options and the verbs of this server.
      # @param verbs [Configuration::Verbs]
      # @param options [Object] what the verb knows as `@options`
      # @param config [Configuration] the same, `@config`
      # @param name [Symbol]
      # @return [Object] what it returns
      def call_verb(verbs, options, config, name, ...)
        bridge.new(verbs, options, config).public_send(name, ...)
      end

      private

      def attach_gem
        ::Puma.stats_object = @statistics
        configuration = @configuration
        ::Puma.define_singleton_method(:cli_config) { configuration }
        singleton = ::Puma::Server.singleton_class
        singleton.prepend(Current) unless singleton.include?(Current)
      end

      # Its own verbs go to those of this server.
      def bridge
        @bridge ||= Class.new(::Puma::DSL) do
          def initialize(verbs, options, config) # rubocop:disable Lint/MissingSuper -- it would read Puma's defaults
            @verbs = verbs
            @options = options
            @config = config
          end

          Configuration::Verbs.of_server.each do |verb|
            define_method(verb) { |*given, **named, &block| @verbs.public_send(verb, *given, **named, &block) }
          end
        end
      end
    end
  end
end
