# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Stands between plain clients and a server whose listeners have the transport of test/core/xor_transport.h, or speak TLS.
# So the tests need not know of the transport. A half-close or a reset of the client's connection is passed on to the server's
# connection, and the other way round. The proxy is a process of its own: each line that it reads names an address of a
# server, and it prints the address where it listens for that server. With "http2" and "http2-tls" another program with the
# same lines carries each request over HTTP/2: http2_proxy.js.

require "socket"
require "openssl" if ENV["RONDO_TEST_XOR"]&.end_with?("tls")

module XorProxy
  XOR = Array.new(256) { |byte| byte ^ 0x55 }.pack("C*")
  BYTES = Array.new(256, &:itself).pack("C*")
  RECORD = 16_384
  NAMES = "\x08http/1.1"

  # One connection of a client, and the connection to the server that belongs to it.
  class Pair
    def initialize(client, server)
      @client = client
      @server = server
      @left = 2
      @mutex = Mutex.new
    end

    def run
      shake_hands
      other = Thread.new { way(@client) { to_client } }
      way(@server) { to_server }
      other.join
    rescue SystemCallError, IOError
      reset
    ensure
      [@client, @server].each { |socket| socket.close unless socket.closed? }
    end

    private

    def shake_hands
      @server.write("XOR?1XOR?2#{[NAMES.bytesize].pack("C")}#{NAMES}")
      raise IOError, "no handshake" unless exactly(5) == "XOR!1" && exactly(5) == "XOR!2"
      exactly(exactly(1).ord)
    end

    def exactly(len)
      @server.read(len).then { |bytes| bytes&.bytesize == len ? bytes : raise(EOFError) }
    end

    # One direction, until it ends. When it breaks, both connections break.
    def way(target)
      yield
      target.shutdown(:WR)
    rescue Errno::ENOTCONN, EOFError
      nil
    rescue SystemCallError, IOError
      reset
    end

    def to_server
      while (bytes = some(@client))
        bytes.tr!(BYTES_FROM, BYTES_TO)
        @server.write(bytes.bytesize.divmod(256).pack("CC"), bytes)
      end
      @server.write("\0\0")
    rescue Errno::EPIPE
      nil # the server has ended, but its last bytes are still on their way to the client
    end

    def to_client
      while (head = @server.read(2)) && head != "\0\0"
        high, low = head.unpack("CC")
        bytes = exactly((high * 256) + low)
        @client.write(bytes.tr(BYTES_FROM, BYTES_TO))
      end
    end

    def some(socket)
      socket.readpartial(RECORD)
    rescue EOFError
      nil
    end

    # Neither side may take this for an orderly end.
    def reset
      [@client, @server].each do |socket|
        next if socket.closed?
        socket.setsockopt(Socket::Option.linger(true, 0))
        socket.close
      end
    rescue SystemCallError, IOError
      nil
    end
  end

  # The same for a server whose listeners speak TLS.
  class SecurePair < Pair
    private

    def shake_hands
      context = OpenSSL::SSL::SSLContext.new
      context.alpn_protocols = ["http/1.1"]
      @secure = OpenSSL::SSL::SSLSocket.new(@server, context)
      @secure.connect
    end

    def run_way
      yield
    rescue OpenSSL::SSL::SSLError => e
      reset unless e.message.include?("unexpected eof") # an end without close_notify is an end
    end

    def to_server
      run_way do
        while (bytes = some(@client))
          @secure.write(bytes)
        end
        @secure.send(:stop) # close_notify; what comes is still read
      end
    end

    def to_client
      run_way do
        while (bytes = some(@secure))
          @client.write(bytes)
        end
      end
    end
  end

  # Ranges for tr, which has a table for them: XOR of each byte.
  escape = ->(bytes) { bytes.gsub(/[\\\-^]/n) { |byte| "\\#{byte}" }.b }
  BYTES_FROM = escape.call(BYTES).freeze
  BYTES_TO = escape.call(XOR).freeze

  # The main loop of the process.
  module Main
    def self.run
      Thread.report_on_exception = false
      $stdout.sync = true
      $stdin.each_line(chomp: true) do |url|
        server, front = listen(url)
        Thread.new { serve(server, url) }
        puts front
      end
    end

    def self.listen(url)
      return [UNIXServer.new("#{url.delete_prefix("unix://")}.xor"), "#{url}.xor"] if url.start_with?("unix:")
      server = TCPServer.new("127.0.0.1", 0)
      [server, "http://127.0.0.1:#{server.addr[1]}"]
    end

    def self.serve(server, url)
      server.listen(1024)
      loop do
        client = server.accept
        Thread.new { pair(client, url) }
      end
    end

    def self.pair(client, url)
      (XorProxy.tls? ? SecurePair : Pair).new(client, connect(url)).run
    rescue SystemCallError
      client.setsockopt(Socket::Option.linger(true, 0))
      client.close
    end

    def self.connect(url)
      return UNIXSocket.new(url.delete_prefix("unix://")) if url.start_with?("unix:")
      TCPSocket.new("127.0.0.1", url[/\d+\z/].to_i).tap { |socket| socket.setsockopt(:TCP, :NODELAY, true) }
    end
  end

  # Whether the servers of the tests have the transport.
  def self.on?
    ENV.key?("RONDO_TEST_XOR")
  end

  # Whether that is TLS. Unix sockets are plain then.
  def self.tls?
    %w[tls http2-tls].include?(ENV.fetch("RONDO_TEST_XOR", nil))
  end

  # Whether the proxy speaks HTTP/2 with the servers.
  def self.http2?
    %w[http2 http2-tls].include?(ENV.fetch("RONDO_TEST_XOR", nil))
  end

  # @return [Hash] the settings that the servers need for that
  def self.settings
    http2? ? { http2: true } : {}
  end

  # @param uri [String] where a test wants a server to listen
  # @return [String] where it listens: with TLS, if that is what the tests are run with
  def self.bind(uri)
    return uri unless tls? && uri.start_with?("tcp:")
    place, query = uri.sub("tcp:", "ssl:").split("?", 2)
    "#{place}?#{[ENV.fetch("RONDO_TEST_TLS"), query].compact.join("&")}"
  end

  # Whether connections of the servers can move to other workers.
  def self.moves?
    ENV.fetch("RONDO_TEST_XOR", "moves") == "moves"
  end

  # @return [String] the address for a client of the server at `url`: that of the proxy, if there is one
  def self.front(url)
    return url if !on? || (tls? && url.start_with?("unix:"))
    @pipe ||= IO.popen(program, "r+")
    @fronts ||= {}
    @fronts[url] ||= @pipe.puts(url) || @pipe.gets.chomp
  end

  def self.program
    return ["node", File.join(__dir__, "http2_proxy.js"), *("tls" if tls?)] if http2?
    [RbConfig.ruby, *("--disable-gems" unless tls?), __FILE__]
  end

  # @return [String] the same for the path of a Unix socket
  def self.front_path(path)
    front("unix://#{path}").delete_prefix("unix://")
  end

  # @return [Integer] the same for a port of this machine
  def self.front_port(port)
    front("http://127.0.0.1:#{port}")[/\d+\z/].to_i
  end

  # @param server [Socket] a connection to a server
  # @return [UNIXSocket] what a plain client reads and writes instead
  def self.through(server)
    client, inner = UNIXSocket.pair
    Thread.new { Pair.new(inner, server).run }
    client
  end
end

XorProxy::Main.run if $PROGRAM_NAME == __FILE__
