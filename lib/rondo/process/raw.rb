# frozen_string_literal: true

# Handlers of raw connections, and sockets of the application that become such connections; see docs/RAW.md. Listeners
# are in server.rb, the connections themselves in ext/rondo/app/rb_raw.c.
# SPDX-License-Identifier: MIT

module Rondo
  # What the ways to a raw connection share.
  # @api private
  module Raw
    module_function

    # @param maker [#call, Object, nil]
    # @param block [Proc, nil]
    # @return [#call] called for each connection, returns its handler
    # @raise [ArgumentError] there is neither, or both
    def maker_of(maker, block = nil)
      raise ArgumentError, "raw connections need a handler or a block, and not both" if maker.nil? == block.nil?
      return block || maker if block || maker.respond_to?(:call)

      -> { maker }
    end

    # @see Server#attach_fd
    def attach(core, socket, handler)
      raise ArgumentError, "a raw connection needs a handler, not #{handler.inspect}" unless handler
      unless socket.is_a?(Integer) || socket.is_a?(IO)
        raise ArgumentError, "cannot attach #{socket.class}: it is neither a descriptor nor a socket"
      end

      core.attach_fd(socket.is_a?(IO) ? socket.fileno : socket, handler)
      handler
    end
  end

  # Makes a raw connection of a socket, as {Server#attach_fd} does, of the server that runs in this process.
  # @param socket [Integer, BasicSocket]
  # @param handler [Object]
  # @return [Object] the handler
  # @raise [Error] no server runs in this process
  # @raise [ArgumentError, IOError] as {Server#attach_fd}
  def self.attach_fd(socket, handler)
    core = PubSub.core or raise Error, "no server runs in this process"
    Raw.attach(core, socket, handler)
  end
end
