# frozen_string_literal: true

# Connections that an application asks for while it loads (docs/CONNECT.md): each process that serves makes its own, also
# one that replaces another; a stop tells their peers; a child of the application has none.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "socket"

class OutgoingProcessesTest < ShellCase
  APP = <<~RUBY
    class Pilot
      def on_open(client) = client.write("\#{Process.pid}\\n")

      def on_message(client, _data)
        number = fork { sleep }
        Process.detach(number)
        client.write("\#{number}\\n")
      end

      def on_shutdown(client) = client.write("bye\\n")
    end

    Rondo.connect("tcp://127.0.0.1:%<port>d", handler: Pilot.new)
    run ->(_env) { [200, {}, ["hello"]] }
  RUBY

  def setup
    super
    @peer = TCPServer.new("127.0.0.1", 0)
    @sockets = [@peer]
    write "config.ru", format(APP, port: @peer.addr[1])
  end

  def teardown
    @sockets.each(&:close)
    super
  end

  def within(&block)
    Timeout.timeout(PATIENCE, &block)
  end

  # @return [Array(TCPSocket, Integer)] a connection, and the process that made it
  def accept
    socket = within { @peer.accept }
    @sockets << socket
    [socket, within { socket.gets }.to_i]
  end

  def test_one_process
    server = start
    socket, pid = accept
    assert_equal server.pid, pid
    socket.write("fork")
    child = within { socket.gets }.to_i
    server.signal("TERM")
    assert_equal "bye\n", within { socket.read } # although the child lives
  ensure
    Process.kill(:KILL, child) if child&.positive?
    server&.stop
  end

  def test_workers
    server = start("-w", "2")
    first, second = accept, accept
    refute_equal first.last, second.last
    Process.kill(:KILL, first.last)
    within { first.first.read }
    third, pid = accept
    refute_includes [first.last, second.last], pid
    server.signal("TERM")
    assert_equal %W[bye\n bye\n], [second.first, third].map { |socket| within { socket.read } }
    server.stop
  end
end
