# frozen_string_literal: true

# Action Cable on connections of the server: what replaces which part of it. A process in which no server of ours runs
# (a console, a job, Puma) keeps Rails' own way, and so does a request that cannot be upgraded. docs/RAILS.md is the
# manual, docs/decisions/0042-action-cable.md has the reasons.
# SPDX-License-Identifier: MIT

require "securerandom"
require "rondo/rails/cable/event_loop"
require "rondo/rails/cable/socket"
require "rondo/rails/cable/fan_out"
require "rondo/rails/cable/connection"
require "rondo/rails/cable/history"
require "rondo/rails/cable/server"
require "rondo/rails/cable/streams"

module Rondo
  module Rails
    # The server's Action Cable.
    # @api private
    module Cable
      # The connections of one process find each other by names that nobody outside of it hears of
      # (ext/rondo/messaging/pubsub.c), and that no client can guess: applications let clients choose names.
      PREFIX = "\0rondo/cable/#{SecureRandom.hex(16)}/".freeze
      # All connections that get the server's heartbeat.
      HEARTBEAT = "#{PREFIX}ping".freeze

      @names = 0
      @mutex = Mutex.new

      class << self
        # @return [Integer] how many subscriptions a connection may have
        attr_reader :max_subscriptions
        # @return [Boolean] whether clients may go on where they were
        attr_reader :history

        # @param config [#max_cable_subscriptions] of the application: config.rondo
        # @return [void]
        # @raise [ConfigurationError] one line
        def attach(config)
          @max_subscriptions = config.max_cable_subscriptions
          unless @max_subscriptions.is_a?(Integer) && @max_subscriptions.positive?
            raise ConfigurationError, "config.rondo.max_cable_subscriptions must be a positive Integer, not " \
                                      "#{@max_subscriptions.inspect}"
          end
          next? ? attach_next : attach_connections
          ::ActionCable::Connection::Subscriptions.prepend(Subscriptions)
          ::ActionCable::Server::Base.prepend(Server)
          ::ActionCable::Server::Worker.prepend(Worker)
          ::ActionCable::Channel::Base.prepend(Streams)
          listen(::ActionCable::Server::Base.config)
          keep_history(config.cable_history, ::ActionCable::Server::Base.config)
        end

        # @return [Boolean] whether sockets and connections are apart: Rails 8.2, or actioncable-next
        def next?
          ::ActionCable::Server.const_defined?(:Socket, false)
        end

        # @param rules [Hash, nil]
        # @param server [ActionCable::Server::Configuration]
        # @return [void]
        # @raise [ConfigurationError] one line
        def keep_history(rules, server)
          return if rules.nil? || rules.empty?

          unless server.cable&.fetch("adapter", nil) == "rondo"
            raise ConfigurationError, "config.rondo.cable_history needs `adapter: rondo` in config/cable.yml"
          end

          History.keep(rules)
          @history = true
        end

        # Other processes may broadcast by `adapter: rondo` from the moment on in which this one serves.
        # @param server [ActionCable::Server::Configuration]
        # @return [void]
        def listen(server)
          return unless server.cable&.fetch("adapter", nil) == "rondo"

          adapter = server.pubsub_adapter
          require "rondo/rails/cable/listener"
          listener = Listener.new(SocketFolder.new(server.cable), server.logger) do |broadcasting, message|
            Rondo.publish(adapter.channel(broadcasting), message)
          end
          Rondo.run { listener.start }
        end

        # @return [Boolean] whether a server of ours runs in this process
        def serving?
          PubSub.serving?
        end

        # @return [String] a name that no other channel of this process has
        def new_name
          "#{PREFIX}#{@mutex.synchronize { @names += 1 }}"
        end

        # @param name [String]
        # @param message [String]
        # @return [Boolean] whether it is on its way to the connections of this process
        def publish(name, message)
          PubSub::PROCESS.publish(name, message)
        end

        private

        def attach_connections
          ::ActionCable::Connection::WebSocket.prepend(Upgrading)
          ::ActionCable::Connection::Base.prepend(Events, Connection)
        end

        def attach_next
          ::ActionCable::Server::Socket::WebSocket.prepend(Upgrading)
          ::ActionCable::Server::Socket.prepend(NextSocket, Events)
          ::ActionCable::Connection::Base.prepend(NextConnection)
          ::ActionCable::Server::Base.prepend(NextServer)
        end
      end
    end
  end
end
