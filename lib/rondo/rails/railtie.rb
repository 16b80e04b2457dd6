# frozen_string_literal: true

# What a Rails application gets from this gem, and the settings that turn each part off. Loaded by loading.rb when Rails
# is there. A part leaves processes and requests of other servers as they are.
# SPDX-License-Identifier: MIT

require "rails/railtie"

module Rondo
  module Rails
    # Each part is a setting: `config.rondo.NAME = false` in config/application.rb, an environment or an initializer
    # turns it off.
    # @api private
    class Railtie < ::Rails::Railtie
      # What attaches a part, by its setting. It gets the application, after all initializers.
      PARTS = {
        action_cable: lambda do |app|
          ActiveSupport.on_load(:action_cable) do
            require "rondo/rails/cable/cable"
            Cable.attach(app.config.rondo)
          end
          # In development nothing may have loaded it when a job broadcasts.
          Rondo.run { ::ActionCable::Server::Base } if defined?(::ActionCable::Engine)
        end,
        turbo: lambda do |app|
          next unless defined?(::Turbo::Engine) && defined?(::ActionCable::Engine) && app.config.rondo.action_cable

          ::ActionCable.server # is loaded now, and gets the part above
          require "rondo/rails/turbo"
          TurboSource.attach(app)
        end,
        live: lambda do |app|
          ActiveSupport.on_load(:action_controller, run_once: true) do
            require "rondo/rails/live"
            Live.attach(app.config.rondo.live_streams)
          end
        end
      }.freeze

      config.rondo = ActiveSupport::OrderedOptions.new
      PARTS.each_key { |name| config.rondo[name] = true }
      config.rondo.max_cable_subscriptions = 1000
      config.rondo.cable_history = {}
      config.rondo.turbo_path = "/turbo-events"
      config.rondo.live_streams = 2000
      SETTINGS = config.rondo.keys.freeze
      private_constant :SETTINGS

      # @param settings [Hash] config.rondo of an application
      # @return [void]
      # @raise [ConfigurationError] one line: there is no such setting
      def self.check(settings)
        unknown = settings.keys - SETTINGS
        raise ConfigurationError, "config.rondo has no #{unknown.first}; it has #{SETTINGS.join(", ")}" if unknown.any?
      end

      config.after_initialize do |app|
        Railtie.check(app.config.rondo)
        PARTS.each { |name, attach| attach.call(app) if app.config.rondo[name] }
      end
    end
  end
end
