# frozen_string_literal: true

# Between Rondo and a handler: the server calls an adapter, and the handler gets an Iodine::Connection.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # A handler of Rondo for one connection. It has the callbacks of the application's handler.
    class Adapter
      CALLBACKS = %i[on_open on_message on_drained on_shutdown ping on_close].freeze
      # Those about which the server asks once for each handler.
      WISHES = %i[on_drained ping].freeze

      # @return [Object] the application's
      attr_reader :handler

      # @param handler [Object]
      # @param connection [Connection, nil] of an adapter whose place this one takes
      # @param seconds [Integer, nil] of silence; nil: as the server has it
      def initialize(handler, connection = nil, seconds: nil)
        @handler = handler
        @seconds = seconds
        @connection = connection
        @begun = !connection.nil?
      end

      # The server asks which callbacks there are.
      def respond_to?(name, include_all = false) # rubocop:disable Style/OptionalBooleanParameter -- Ruby's own
        return super unless CALLBACKS.include?(name)

        # Each adapter learns of the beginning and the end.
        %i[on_open on_close].include?(name) || @handler.respond_to?(name)
      end

      # @param client [Rondo::Client]
      # @return [void]
      def on_open(client)
        return if @begun

        @begun = true
        client.timeout = @seconds if @seconds
        tell(:on_open, connection(client))
      end

      # @param client [Rondo::Client]
      # @param message [String]
      # @return [void]
      def on_message(client, message)
        tell(:on_message, connection(client), message)
      end

      # @param client [Rondo::Client]
      # @return [void]
      def on_drained(client)
        tell(:on_drained, connection(client))
      end

      # @param client [Rondo::Client]
      # @return [void]
      def on_shutdown(client)
        tell(:on_shutdown, connection(client))
      end

      # @param client [Rondo::Client]
      # @return [void]
      def ping(client)
        tell(:ping, connection(client))
      end

      # @param client [Rondo::Client, nil] nil: a connection that was asked for could not be made
      # @return [void]
      def on_close(client)
        return if @replaced
        return tell(:on_close, nil) unless client

        tell(:on_close, connection(client))
        connection(client).over
      end

      # At once, as iodine does it; Rondo would wait for the callback that runs.
      # @param handler [Object]
      # @param connection [Connection]
      # @return [void]
      def switch(handler, connection)
        return if handler.equal?(@handler)

        tell(:on_close, connection)
        before, @handler = @handler, handler
        make_room(connection) if WISHES.any? { |name| before.respond_to?(name) != handler.respond_to?(name) }
        tell(:on_open, connection)
      end

      private

      # Rondo asks a handler what it wants when it gets it. Until it gets the next adapter this one still stands in.
      def make_room(connection)
        @replaced = true
        successor = Adapter.new(@handler, connection)
        connection.adapter = successor
        @client.handler = successor
      end

      def connection(client)
        @client = client
        @connection ||= Connection.new(client, self)
      end

      def tell(name, *arguments)
        Base.guard { @handler.public_send(name, *arguments) } if @handler.respond_to?(name)
      end
    end
  end
end
