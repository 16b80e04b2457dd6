# frozen_string_literal: true

# What becomes of clients that a server that stops has not accepted: they wait in the queue of its socket, because its
# only connection is in use.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class DrainTest < ClusterCase
  # @return [Server]
  def server_with(line, workers)
    write "config/rondo.rb", "max_connections 1\n#{line}\n"
    workers.zero? ? start : cluster(workers: workers)
  end

  def ask(server, path)
    TCPSocket.new("127.0.0.1", server.port).tap { |client| client.write("GET #{path} HTTP/1.0\r\n\r\n") }
  end

  # @return [Array<String>] the status of the client that was there and of the one that waited, or how it ended
  def ends(server, signal)
    clients = [ask(server, "/slow")]
    server.wait_for_log(/^slow began$/)
    clients << ask(server, "/")
    eventually("it waits in the queue") { queued(server.own_port).positive? }
    server.signal(signal)
    signal == "USR1" ? server.wait_for_log(/^- Worker 0 .*phase: 1$/) : wait_until_nothing_listens(server)
    write "go", ""
    clients.map { |client| end_of(client) }
  ensure
    clients.each(&:close)
  end

  # How many connections nobody has accepted: what the kernel shows in place of the bytes to read.
  def queued(port)
    listening = format(" 0100007F:%04X 00000000:0000 0A ", port)
    File.foreach("/proc/net/tcp").sum { |line| line.include?(listening) ? line.split[4].split(":").last.hex : 0 }
  end

  def wait_until_nothing_listens(server)
    eventually("a closed socket") do
      TCPSocket.new("127.0.0.1", server.own_port).close
    rescue Errno::ECONNREFUSED
      true
    end
  end

  def end_of(client)
    client.read[/\AHTTP\S+ (\d+)/, 1] || "nothing"
  rescue Errno::ECONNRESET
    "reset"
  end

  [0, 1].each do |workers|
    define_method("test_they_are_served_#{workers}") do
      assert_equal %w[200 200], ends(server_with("drain_on_shutdown", workers), "TERM")
    end

    define_method("test_they_are_left_#{workers}") do
      assert_equal %w[200 reset], ends(server_with("drain_on_shutdown false", workers), "TERM")
    end
  end

  # The new worker has the same queue.
  def test_a_phased_restart_leaves_nobody
    server = server_with("drain_on_shutdown false", 1)
    assert_equal %w[200 200], ends(server, "USR1")
    assert server.stop.success?
  end
end
