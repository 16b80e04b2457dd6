# frozen_string_literal: true

# Connections of Action Cable whose socket is the server's, and their subscriptions. What a socket talks to is
# ActionCable::Connection::Base up to Rails 8.1. From 8.2 on, and with the gem actioncable-next, it is
# ActionCable::Server::Socket, which has a connection.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # Of what a socket talks to.
      module Events
        # Who has these methods, if the application does not.
        OWNERS = %w[ActionCable::Connection::Base ActionCable::Server::Socket].freeze

        # @return [Socket, nil] nil: Rails' own, or that of another library, such as AnyCable
        def of_server
          websocket.of_server if websocket.respond_to?(:of_server)
        end

        # An event of a socket of the server is on an application thread already, and they come one at a time. The
        # pool is the server's of now: code may have been loaded anew since this connection came.
        # @param method [Symbol]
        # @return [void]
        def send_async(method, *arguments)
          return super unless of_server

          server.worker_pool.invoke(self, method, *arguments, connection: self)
        end

        # @return [Boolean] whether what goes to the client is as Rails makes it, so that it can be made once for all
        def plain_wire?
          Events.of_rails?(self, @coder)
        end

        # @param target [Object] has encode
        # @param coder [#encode]
        # @param connection [ActionCable::Connection::Base]
        # @return [Boolean]
        def self.of_rails?(target, coder, connection = target)
          coder.equal?(::ActiveSupport::JSON) && OWNERS.include?(target.method(:encode).owner.name) &&
            (%i[transmit raw_transmit beat] & connection.public_methods).all? do |name|
              OWNERS.include?(connection.method(name).owner.name)
            end
        end

        private

        # A connection that its application has failed to open would take messages and never answer.
        def handle_open
          is_open = false
          super
          is_open = true
        ensure
          of_server&.abort unless is_open
        end
      end

      # Of ActionCable::Connection::Base. Its server is nobody else's business from Rails 8.2 on.
      module Connection
        # @param broadcasting [String]
        # @param identifier [String]
        # @param socket [Socket]
        # @return [FanOut::Member]
        # @raise [Error] the client is closed, or at its limit of subscriptions
        def join_stream(broadcasting, identifier, socket)
          server.join_stream(broadcasting, identifier, socket)
        end

        private

        # The protocol with history wants a name of the session. It is never restored: who comes back gets another one.
        def send_welcome_message
          return super unless of_server&.history

          transmit({ type: "welcome", sid: SecureRandom.hex(16) })
        end
      end

      # Of ActionCable::Connection::Base, from Rails 8.2 on.
      module NextConnection
        include Connection

        # @return [Socket, nil] nil: Rails' own, or that of another library
        def of_server
          socket.of_server if socket.respond_to?(:of_server)
        end
      end

      # Of ActionCable::Server::Socket.
      module NextSocket
        # @return [Boolean]
        def plain_wire?
          Events.of_rails?(self, @coder, connection)
        end
      end

      # Of ActionCable::Connection::Subscriptions: what one client may ask for.
      module Subscriptions
        IDENTIFIER_BYTES = 8192
        # Of all subscriptions of a client together: for each that it may have.
        AVERAGE_BYTES = 256

        # Clients of the protocol with history say that they are there, and may ask for it beside a subscription.
        # @param data [Hash]
        # @return [void]
        def execute_command(data)
          return super unless connection.of_server&.history

          case data["command"]
          when "pong" then nil
          when "history" then connection.transmit({ type: "reject_history", identifier: data["identifier"] })
          else super
          end
        end

        # @param data [Hash] the command
        # @return [void]
        def add(data)
          socket = connection.of_server or return super
          error = too_much(data["identifier"])
          unless error
            begin
              socket.history_request = data["history"]
              return super
            ensure
              socket.history_request = nil # what an action streams later goes on from there
            end
          end

          logger.error("Rejected a subscription: #{error}")
          connection.transmit({ identifier: data["identifier"], type: "reject_subscription" })
        end

        private

        def too_much(identifier)
          return unless identifier.is_a?(String)
          if identifier.bytesize > IDENTIFIER_BYTES
            return "an identifier of #{identifier.bytesize} bytes, and #{IDENTIFIER_BYTES} are the most"
          end
          return if subscriptions.key?(identifier)
          if subscriptions.size >= Cable.max_subscriptions
            return "this connection has #{subscriptions.size} (config.rondo.max_cable_subscriptions)"
          end

          return if fits?(identifier.bytesize)

          "the identifiers of this connection would have more than #{most_identifier_bytes} bytes " \
            "(#{AVERAGE_BYTES} for each of config.rondo.max_cable_subscriptions)"
        end

        # Counted anew only when it seems to be too much: what was unsubscribed is not subtracted.
        def fits?(bytes)
          @identifier_bytes = (@identifier_bytes || 0) + bytes
          return true if @identifier_bytes <= most_identifier_bytes

          @identifier_bytes = subscriptions.keys.sum(&:bytesize) + bytes
          return true if @identifier_bytes <= most_identifier_bytes

          @identifier_bytes -= bytes
          false
        end

        def most_identifier_bytes
          [Cable.max_subscriptions * AVERAGE_BYTES, IDENTIFIER_BYTES].max
        end
      end
    end
  end
end
