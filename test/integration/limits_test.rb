# frozen_string_literal: true

# Limits on connections: idle ones make room for new clients.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/server_process"
require "socket"
require "timeout"

class LimitsTest < Minitest::Test
  HELLO = File.expand_path("../../examples/hello.ru", __dir__)

  def test_idle_connections_do_not_keep_new_clients_out
    ServerProcess.run(HELLO, settings: { max_connections: 10 }) do |server|
      idle = Array.new(10) { ask(server) }
      assert_equal 10, idle.size
      ask(server).close # the eleventh is served although none of the ten has left
    end
  end

  private

  def ask(server)
    socket = TCPSocket.new("127.0.0.1", server.port)
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    answer = Timeout.timeout(20) { socket.readpartial(4096) }
    assert_match(%r{\AHTTP/1\.1 200 }, answer)
    socket
  end
end
