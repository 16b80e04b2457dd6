# frozen_string_literal: true

# Hostile clients, all in one process: each opens a connection, sends its bytes and stays. A client that the server
# closes comes back, with a limit on the rate. Used by attacks.rb.
# SPDX-License-Identifier: MIT

require "socket"
require "zlib"
require_relative "servers"

module Bench
  # A number of clients of one kind.
  class Attacker
    PER_SECOND = 40
    MESSAGE_BYTES = 60_000 # less than a server accepts as one message

    # @param port [Integer] of the server
    # @param kind [Symbol] one of the methods below {ways}
    # @param count [Integer] clients
    def initialize(port, kind, count)
      @port = port
      @kind = kind
      @count = count
      @sockets = []
    end

    # Forks, and returns when all its clients have begun.
    #
    # @return [Integer] the process
    def self.start(...)
      ready, told = IO.pipe
      pid = fork do
        ready.close
        # On the CPU of the bystander. The bystander must not wait for it, so that only the server's work counts.
        system("taskset", "-cp", CLIENT_CPU.to_s, Process.pid.to_s, out: File::NULL)
        system("chrt", "-i", "-p", "0", Process.pid.to_s, out: File::NULL)
        new(...).call { told.close }
      end
      told.close
      ready.read
      ready.close
      pid
    end

    # Runs until it is killed.
    #
    # @yield when all clients are connected
    def call
      @count.times { |number| begin_one(number) }
      yield
      loop { go_on }
    end

    private

    def begin_one(number)
      @sockets << send(@kind, number)
    rescue SystemCallError
      sleep(1.0 / PER_SECOND) # the server refuses more
    end

    # Comes back for each connection that the server ended. One kind keeps the connections it has.
    def go_on
      return publish_again if @kind == :patterns

      ended, = IO.select(@reads ? [] : @sockets, nil, nil, 0.05)
      ended.to_a.each { |socket| look_at(socket) }
      (@count - @sockets.size).clamp(0, PER_SECOND / 20).times { |number| begin_one(number) }
    end

    # Bytes from the server are read and dropped.
    def look_at(socket)
      return unless socket.read_nonblock(65_536, exception: false).nil?

      forget(socket)
    rescue SystemCallError
      forget(socket)
    end

    def forget(socket)
      socket.close
      @sockets.delete(socket)
    end

    def connect(receive_bytes = nil)
      socket = Socket.new(:INET, :STREAM)
      socket.setsockopt(:SOCKET, :RCVBUF, receive_bytes) if receive_bytes
      socket.connect(Addrinfo.tcp("127.0.0.1", @port))
      socket
    end

    def ask(text, receive_bytes = nil)
      connect(receive_bytes).tap { |socket| socket.write(text) }
    end

    # ---- the ways ----

    # Asks whether its body is wanted, and never sends the body.
    def expect(_)
      ask("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n")
    end

    # Reads nothing of a body that is sent in parts.
    def unread(_)
      @reads = true
      ask("GET /parts HTTP/1.1\r\nHost: a\r\n\r\n", 4096)
    end

    # Reads nothing of a body that is sent as a whole.
    def slow(_)
      @reads = true
      ask("GET /whole HTTP/1.1\r\nHost: a\r\n\r\n", 4096)
    end

    # Sends all of its body but the last byte.
    def upload(_)
      ask("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 71680\r\n\r\n#{"x" * 71_679}")
    end

    # Sends as long as the server reads.
    def disk(_)
      ask("POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 2097152\r\n\r\n").tap do |socket|
        Thread.new do
          sleep 0.05 while socket.write("x" * 65_536)
        rescue SystemCallError, IOError
          nil
        end
      end
    end

    # Begins a message that is announced as much longer than the bytes it sends.
    def message(_)
      upgrade("Sec-WebSocket-Extensions: permessage-deflate\r\n").tap do |socket|
        deflate = Zlib::Deflate.new(Zlib::BEST_COMPRESSION, -Zlib::MAX_WBITS)
        packed = deflate.deflate("\0" * 250_000, Zlib::SYNC_FLUSH)
        socket.write(frame(packed, 0x42)) # no end: compressed, binary
      end
    end

    # Subscribes to as many long names as allowed.
    def names(number)
      upgrade.tap { |socket| say(socket, "names", 1000) { |index| "#{number}-#{index}-".ljust(1000, "n") } }
    end

    # Subscribes to patterns that are hard to match: at each position of the name they fail late. A thousand of them are
    # as long as the names of one client may be together (max_subscription_bytes).
    def patterns(_)
      upgrade.tap do |socket|
        say(socket, "patterns", 1000) do |index|
          index.even? ? "*#{"a" * 58}b#{index}" : "*#{"?" * 30}[#{"b" * 25}]#{index}"
        end
      end
    end

    def publish_again
      socket = @sockets.first
      socket.write(frame("publish #{"a" * 1000}"))
      socket.readpartial(4096)
      sleep 0.02
    rescue EOFError, SystemCallError
      sleep 0.1
    end

    # ---- WebSocket ----

    def upgrade(more = "")
      socket = ask("GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
                   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n#{more}\r\n")
      head = +""
      head << socket.readpartial(4096) until head.include?("\r\n\r\n")
      socket
    rescue EOFError
      raise Errno::ECONNRESET
    end

    # Sends messages that are short enough to be accepted, and waits for the answer to each one.
    def say(socket, verb, count, &name)
      Array.new(count, &name).each_slice([MESSAGE_BYTES / 1001, 1].max) do |some|
        socket.write(frame("#{verb} #{some.join(" ")}"))
        socket.readpartial(4096)
      end
    rescue EOFError
      raise Errno::ECONNRESET
    end

    # One frame with a mask of zeros.
    def frame(bytes, first = 0x81)
      length = bytes.bytesize
      size = length < 126 ? [0x80 | length].pack("C") : [0x80 | 126, length].pack("Cn")
      [first].pack("C") + size + ("\0" * 4) + bytes
    end
  end
end
