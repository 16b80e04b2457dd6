# frozen_string_literal: true

# A proxy of the tests before a server on this machine: cuts all connections, and lets none through until it is told to.
# SPDX-License-Identifier: MIT

require "socket"

class TcpCutter
  # @return [Integer]
  attr_reader :port
  # @return [Integer] port of the server to which new connections go; others stay where they are
  attr_writer :target

  # @param target [Integer] port of the server
  def initialize(target)
    @target = target
    @listener = TCPServer.new("127.0.0.1", 0)
    @port = @listener.addr[1]
    @pairs = []
    @mutex = Mutex.new
    @thread = Thread.new { accept_all }
  end

  # @return [void]
  def cut
    @mutex.synchronize do
      @is_cut = true
      @pairs.flatten.each { |socket| drop(socket) }
      @pairs.clear
    end
  end

  # @return [void]
  def mend
    @mutex.synchronize { @is_cut = false }
  end

  # @return [void]
  def close
    @listener.close
    @thread.kill
    cut
  end

  private

  def accept_all
    loop { join(@listener.accept) }
  rescue IOError
    nil
  end

  def join(client)
    @mutex.synchronize do
      return client.close if @is_cut

      @pairs << (pair = [client, TCPSocket.new("127.0.0.1", @target)])
      [pair, pair.reverse].each { |from, to| Thread.new { carry(from, to) } }
    end
  rescue SystemCallError
    client.close
  end

  def carry(from, to)
    loop { to.write(from.readpartial(65_536)) }
  rescue SystemCallError, IOError
    [from, to].each { |socket| drop(socket) }
  end

  # Wakes who reads it, which close does not.
  def drop(socket)
    socket.shutdown
  rescue SystemCallError, IOError
    nil
  end
end
