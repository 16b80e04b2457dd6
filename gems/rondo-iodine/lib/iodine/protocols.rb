# frozen_string_literal: true

# Which handler a connection with TLS gets, where its handshake decides about that (Iodine::TLS#on_protocol).
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # The handler of a connection until it has one.
    class Protocols
      # @param blocks [Hash{String => Proc}] by the names of protocols; the first one is for connections without any
      # @param handler [Object] of a connection that was asked for; it hears that it could not be made
      def initialize(blocks, handler)
        @blocks = blocks
        @handler = handler
      end

      # @param connection [Connection]
      # @return [void]
      def on_open(connection)
        handler = @blocks.fetch(connection.agreed) { @blocks.values.first }.call
        connection.handler = handler.equal?(true) ? nil : handler
      end

      # @param connection [Connection, nil]
      # @return [void]
      def on_close(connection)
        @handler.on_close(nil) if connection.nil? && @handler.respond_to?(:on_close)
      end
    end
  end
end
