# frozen_string_literal: true

# Clients in a closed loop, all in one thread: each sends a request, waits for its answer, and repeats. Records the
# longest wait and counts the failures. Used by cluster.rb.
# SPDX-License-Identifier: MIT

require "socket"

module Bench
  # A number of clients, one path each.
  class Crowd
    # One connection.
    Client = Struct.new(:socket, :path, :answers, :pid, :asked, :text, keyword_init: true)

    # @return [Float] milliseconds
    attr_reader :longest_ms
    # @return [Integer] requests without an answer, including those that a client might send again because their
    #   connection was kept
    attr_reader :failed

    # @param port [Integer]
    # @param paths [Array<String>] one for each client
    # @param fresh [Boolean] one more client opens a new connection for each request
    def initialize(port, paths, fresh: false)
      @port = port
      @paths = paths
      @fresh = fresh
      @failed = 0
      @longest_ms = 0.0
      @clients = paths.map { |path| Client.new(path: path, answers: 0) }
      @clients << Client.new(path: "/", answers: 0, pid: :fresh) if fresh
    end

    # @return [String] the body of one answer
    def self.ask(port, path)
      socket = ask_later(port, path)
      socket.read.split("\r\n\r\n", 2).last
    ensure
      socket&.close
    end

    # @return [TCPSocket] a connection with a request on its way
    def self.ask_later(port, path)
      TCPSocket.new("127.0.0.1", port).tap { |socket| socket.write("GET #{path} HTTP/1.0\r\nHost: a\r\n\r\n") }
    end

    # @return [self]
    def run(seconds)
      over = now + seconds
      @longest_ms = 0.0
      turn until now > over
      self
    end

    # @return [self]
    def run_until_told
      turn until @told
      self
    end

    # Can be called from any thread.
    def tell
      @told = true
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def turn
      @clients.each { |client| begin_request(client) unless client.asked }
      sockets = @clients.filter_map { |client| [client.socket, client] if client.socket }.to_h
      ready, = IO.select(sockets.keys, nil, nil, 0.05)
      ready&.each { |socket| read(sockets[socket]) }
    end

    def begin_request(client)
      client.socket ||= TCPSocket.new("127.0.0.1", @port)
      client.asked = now
      client.text = +""
      ending = "Connection: close\r\n" if client.pid == :fresh
      client.socket.write("GET #{client.path} HTTP/1.1\r\nHost: a\r\n#{ending}\r\n")
    rescue SystemCallError
      drop(client)
    end

    def read(client)
      part = client.socket.read_nonblock(65_536, exception: false)
      return if part == :wait_readable
      return drop(client) if part.nil?

      client.text << part
      head, body = client.text.split("\r\n\r\n", 2)
      return if body.nil? || body.bytesize < head[/^content-length: (\d+)/i, 1].to_i

      finish(client, head[%r{\AHTTP/1\.1 (\d+)}, 1], body)
    rescue SystemCallError
      drop(client)
    end

    def finish(client, status, body)
      @longest_ms = [@longest_ms, (now - client.asked) * 1000].max
      status == "200" ? client.answers += 1 : @failed += 1
      client.asked = nil
      return close(client) if client.pid == :fresh || client.text.match?(/^connection: close/i)

      client.pid = body
    end

    def drop(client)
      @failed += 1
      close(client)
      client.asked = nil
    end

    def close(client)
      client.socket&.close
      client.socket = nil
    end
  end
end
