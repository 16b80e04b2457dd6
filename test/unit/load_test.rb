# frozen_string_literal: true

# Rondo::Load, which makes the load of rondo bench.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "socket"
require "timeout"

class LoadTest < Minitest::Test
  # So short that Ruby keeps it in the object itself, which compaction moves.
  REQUEST = "GET / HTTP/1.0\r\n\r\n"
  ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"

  def setup
    @server = TCPServer.new("127.0.0.1", 0)
  end

  def teardown
    @load&.kill&.join
    @server.close
  end

  def load(texts)
    plan = { requests: texts, last_requests: texts, kept: 1, piped: 0, fresh: 0, depth: 1, seconds: 3600, patience: 0 }
    @load = Thread.new { Rondo::Load.run("127.0.0.1", @server.addr[1], plan) }
    Timeout.timeout(60) { @server.accept }
  end

  def read(socket)
    Timeout.timeout(60) { socket.readpartial(REQUEST.bytesize) }
  end

  def test_requests_stay_what_they_are_while_ruby_moves_and_changes_them
    around = Array.new(50_000) { |index| "a#{index}" }
    texts = [REQUEST.dup]
    socket = load(texts)
    assert_equal REQUEST, read(socket)
    around.clear
    texts.first.replace("POST")
    texts.clear
    10.times do
      GC.compact if GC.respond_to?(:compact)
      Array.new(50_000) { |index| "b#{index}" }
      socket.write(ANSWER)
      assert_equal REQUEST, read(socket)
    end
  ensure
    socket&.close
  end

  def test_what_is_no_plan
    [["10.0.0.1", "GET"], ["0.0.0.0", "GET"], ["::ffff:127.0.0.1", "GET"], ["localhost", "GET"], ["127.0.0.1", ""], ["127.0.0.1\0", "GET"]].each do |host, text|
      plan = { requests: [text], last_requests: ["GET"], kept: 1, piped: 0, fresh: 0, depth: 1, seconds: 0, patience: 0 }
      assert_raises(ArgumentError, host) { Rondo::Load.run(host, @server.addr[1], plan) }
    end
  end
end
