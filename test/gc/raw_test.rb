# frozen_string_literal: true

# Raw connections through a server of this process while everything that can be collected or moved is; see
# server_test.rb beside it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "socket"
require "timeout"

class CollectedRawTest < Minitest::Test
  # Nothing is called here, but it lives as long as its connection.
  Silent = Class.new

  # Answers, and subscribes with a block.
  class Answering
    def on_open(client)
      client.subscribe("news") { |channel, message| client.write("#{channel}: #{message}\n") }
      client.write("open\n")
    end

    def on_message(client, data)
      client.write(data)
    end

    def on_close(client)
      client.close_code
    end
  end

  def test_makers_handlers_and_clients
    known = ObjectSpace::WeakMap.new
    made = Queue.new
    makers = [Silent, Answering].map { |kind| -> { note(known, kind.new).tap { made << true } } }
    serve(makers) do |server, ports|
      sockets = ports.map { |port| TCPSocket.new("127.0.0.1", port) }
      2.times { within { made.pop } }
      ours, theirs = UNIXSocket.pair
      server.attach_fd(theirs, note(known, Answering.new))
      theirs.close
      talk(sockets.last, ours)
      GC.start
      assert_equal 3, known.size
      [*sockets, ours].each(&:close)
    end
  end

  private

  # @return [Object] the handler, which nobody keeps but its connection
  def note(known, handler)
    known[handler] = true
    handler
  end

  def talk(*sockets)
    sockets.each { |socket| assert_equal "open\n", line(socket) }
    Rondo.publish("news", "today")
    sockets.each do |socket|
      assert_equal "news: today\n", line(socket)
      socket.write("word\n")
      assert_equal "word\n", line(socket)
    end
  end

  def within(&block)
    Timeout.timeout(300, &block)
  end

  def line(socket)
    within { socket.gets }
  end

  def serve(makers)
    server = Rondo::Server.new(->(_env) { [200, {}, []] }, environment: "test", ping_interval_ms: 0)
    ports = makers.map { |maker| server.listen_raw("tcp://127.0.0.1:0", maker)[/\d+\z/].to_i }
    thread = Thread.new { server.run }
    yield server, ports
  ensure
    server&.stop(force: true)
    thread&.join(60)
  end
end
