# frozen_string_literal: true

# What `puma.socket` is: addresses of the connection, which change nothing, and everything that an IO can do, which
# takes the connection over by rack.hijack. So nothing comes between the bytes of a response.
# SPDX-License-Identifier: MIT

require "socket"

module Rondo
  # The connection of one request, on the thread of its call.
  # @api private
  class PumaSocket
    # @param connection [Connection]
    def initialize(connection)
      @connection = connection
    end

    # @return [Addrinfo]
    # @raise [IOError] the call is over, or the client is gone
    def local_address
      return @io.local_address if @io

      Addrinfo.new(@connection.local_address || raise(IOError, "puma.socket has addresses only during the request"))
    end

    # @return [Addrinfo] of the peer, or of the client that a PROXY header names
    # @raise [IOError] as above
    def remote_address
      return local_address && Addrinfo.unix("") unless (host, port = @connection.peer)

      Addrinfo.tcp(host, port)
    end

    # @return [Array] as IPSocket's
    def addr(*)
      described(local_address)
    end

    # @return [Array] as IPSocket's, without looking the name up
    def peeraddr(*)
      described(remote_address)
    end

    # Takes the connection over.
    # @return [IO]
    # @raise [IOError] as rack.hijack
    def to_io
      @io = @connection.call # which returns the same one again
    end

    # @return [Boolean]
    def closed?
      @io ? @io.closed? : false
    end

    # @return [String]
    def inspect
      "#<#{self.class}>"
    end

    private

    def described(address)
      return ["AF_UNIX", address.unix_path] if address.unix?

      [address.ipv6? ? "AF_INET6" : "AF_INET", address.ip_port, address.ip_address, address.ip_address]
    end

    def respond_to_missing?(name, *)
      BasicSocket.method_defined?(name)
    end

    def method_missing(name, ...)
      BasicSocket.method_defined?(name) ? to_io.public_send(name, ...) : super
    end
  end
end
