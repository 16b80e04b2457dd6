# frozen_string_literal: true

# A test in the place of systemd: the socket of NOTIFY_SOCKET. The kernel keeps ten datagrams, and what comes then is
# dropped, so a thread takes them all the time. sd_notify(3).
# SPDX-License-Identifier: MIT

require "socket"
require "timeout"

class NotifySocket
  PATIENCE = 60

  # @param path [String]
  def initialize(path)
    @socket = Socket.new(:UNIX, :DGRAM)
    @socket.bind(Addrinfo.unix(path))
    @told = Queue.new
    @reader = Thread.new { loop { @told << @socket.recv(10_000) } }
  end

  # @return [String] the next message; what comes before one that matches is dropped
  # @raise [Timeout::Error] there is none
  def hear(pattern = //)
    Timeout.timeout(PATIENCE, nil, "#{pattern.inspect} was not notified") do
      loop { @told.pop.then { |text| return text if text.match?(pattern) } }
    end
  end

  # Drops what has come.
  def clear
    @told.clear
  end

  def close
    @reader.kill.join
    @socket.close
  end
end
