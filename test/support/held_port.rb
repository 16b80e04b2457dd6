# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A free port of 127.0.0.1 that stays free: a socket is bound to it and does not listen. The kernel gives the port to no
# program that asks for any port. A server that asks for this port with SO_REUSEADDR, as servers do, gets it, even when
# it starts there a second time. Without a server, connections are refused.

require "socket"

class HeldPort
  attr_reader :number

  # Yields the number of the port.
  def self.open
    port = new
    yield port.number
  ensure
    port&.close
  end

  def initialize
    @socket = Socket.new(:INET, :STREAM)
    @socket.setsockopt(:SOCKET, :REUSEADDR, true)
    @socket.bind(Addrinfo.tcp("127.0.0.1", 0))
    @number = @socket.local_address.ip_port
  end

  def close
    @socket.close
  end
end
