# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A free port of 127.0.0.1 that stays free: a socket is bound to it and does not listen. The kernel gives the port to
# no other program that asks for any port; a server that asks for this one, as servers do with SO_REUSEADDR, gets it,
# also when it starts there a second time. Without a server a connection is refused.

require "socket"

class HeldPort
  attr_reader :number

  # Yields a number.
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
