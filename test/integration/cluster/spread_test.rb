# frozen_string_literal: true

# A stop ends upgraded connections one by one, over drain_spread: what their clients hear, in which order, and what ends
# that before its time. How many end in a turn: test/core/transport/test_parting.c.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require "support/event_stream"
require "support/websocket_peer"

class SpreadTest < ClusterCase
  # Streams say who serves them; /flood gets more than sockets take.
  PUSH = <<~RUBY
    class Push
      def on_open(client)
        client.write(Process.pid.to_s)
        client.write("x" * 900_000) if client.env["PATH_INFO"] == "/flood"
        warn "open"
      end
      def on_message(client, data) = client.write(data)
      def on_shutdown(client) = warn("told")
    end
    run lambda { |env|
      next [200, {}, [Process.pid.to_s]] unless env["rack.upgrade?"]

      env["rack.upgrade"] = Push.new
      [200, {}, []]
    }
  RUBY
  MANY = 30

  # A client of a stream, or of a WebSocket.
  Stream = Struct.new(:socket, :head) do
    # @return [EventStream] all of it
    def rest
      EventStream.new.feed(socket.read)
    rescue Errno::ECONNRESET
      EventStream.new
    end
  end

  def setup
    super
    write "config.ru", PUSH
  end

  # @return [Server]
  def server_with(lines, workers)
    write "config/rondo.rb", lines
    workers.zero? ? start : cluster(workers: workers)
  end

  # @return [Stream]
  def stream(server, path = "/", receive_buffer: nil)
    socket = Socket.new(:INET, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, receive_buffer) if receive_buffer
    socket.connect(Addrinfo.tcp("127.0.0.1", server.port))
    @sockets << socket
    socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
    Stream.new(socket, socket.gets("\r\n\r\n"))
  end

  # Reads all at once. The block is called when all are about to.
  # @return [Array<Integer>] numbers of the streams, in the order of their ends
  def order_of_ends(streams)
    mutex = Mutex.new
    order = []
    readers = streams.each_with_index.map do |stream, number|
      Thread.new do
        retry_ms = stream.rest.retry
        mutex.synchronize { order << [number, retry_ms] }
      end
    end
    Thread.pass until readers.all? { |reader| reader.status == "sleep" }
    yield
    readers.each(&:join)
    order
  end

  [0, 2].each do |workers|
    define_method("test_each_is_told_to_come_back_#{workers}") do
      server = server_with("drain_spread 1", workers)
      streams = Array.new(MANY) { stream(server) }
      order = order_of_ends(streams) { server.signal("TERM") }
      retries = order.map(&:last)
      assert_empty retries.grep_v(1000..2000)
      assert_operator retries.uniq.size, :>, 1
      refute_equal (0...MANY).to_a, order.map(&:first)
      assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
      assert_equal MANY, server.log.scan(/^told$/).size
    end

    define_method("test_a_close_says_that_the_service_restarts_#{workers}") do
      server = server_with("drain_spread 0.2", workers)
      peers = Array.new(3) { WebsocketPeer.new(server.url) }
      peers.each(&:hear)
      server.signal("TERM")
      peers.each { |peer| assert_equal [1012, "service restart"], peer.hear_close }
      peers.each(&:close)
      server.stop
    end

    # The second signal does not wait.
    define_method("test_a_second_signal_#{workers}") do
      server = server_with("drain_spread 600\ndrain_timeout 3600\nworker_shutdown_timeout 3600", workers)
      streams = Array.new(3) { stream(server) }
      server.wait_for_log(/(?:^open$.*){3}/m)
      server.signal("TERM")
      server.wait_for_log(/^- Gracefully/)
      assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
      streams.each(&:rest)
    end

    # It reads nothing, and has much to read. Another one is told in its time.
    define_method("test_a_client_that_does_not_read_#{workers}") do
      server = server_with("drain_spread 600\ndrain_timeout 2", workers)
      stalled = stream(server, "/flood", receive_buffer: 4096)
      other = stream(server)
      server.wait_for_log(/(?:^open$.*){2}/m)
      server.signal("TERM")
      assert_includes 1000..601_000, other.rest.retry
      assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
      assert stalled.head
    end
  end

  # They are served until their time comes.
  def test_until_then_they_are_served
    server = server_with("drain_spread 600\ndrain_timeout 3600\nworker_shutdown_timeout 3600", 2)
    peer = WebsocketPeer.new(server.url)
    peer.hear
    server.signal("TERM")
    server.wait_for_log(/^- Gracefully/)
    10.times { |number| assert_equal number.to_s, peer.ask(number.to_s) }
    server.signal("TERM")
    server.stop
  end

  # Clients of a worker that is replaced come back to the same address.
  def test_a_phased_restart
    server = server_with("drain_spread 0.3", 2)
    streams = Array.new(6) { stream(server) }
    old = workers(server).values
    restart(server, "USR1", phase: 1)
    found = streams.map(&:rest)
    assert_equal old.sort, found.map { |each| each.events.first.data.to_i }.uniq.sort
    assert_empty found.map(&:retry).grep_v(1000..1300)
    refute_includes old, EventStream.new.feed(stream(server).socket.readpartial(999)).events.first.data.to_i
    assert server.stop.success?
  end

  # While one process restarts itself, nobody could come back before the last one has gone.
  def test_a_restart_of_one_process
    server = server_with("drain_spread 600\ndrain_timeout 3600", 0)
    streams = Array.new(3) { stream(server) }
    server.signal("USR2")
    assert_empty streams.map { |each| each.rest.retry }.grep_v(1000..601_000)
    server.wait_for_log(/(?:^Use Ctrl-C to stop$.*){2}/m)
    assert_equal "200", get(server).code
    server.stop
  end

  def test_without_it
    server = server_with("", 0)
    socket = stream(server)
    server.signal("TERM")
    found = socket.rest
    assert_nil found.retry
    assert_equal 1, found.events.size
    server.stop(signal: "TERM")
  end
end
