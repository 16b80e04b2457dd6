# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A blocking client that sends exactly the given bytes and checks the answer with ResponseParser. Every read has a
# deadline. For many exchanges at once see exchange.rb.

require "io/nonblock"
require "socket"
require_relative "response_parser"

class RawClient
  # No bytes came before the deadline.
  class Timeout < StandardError; end

  DEADLINE = 30

  attr_reader :socket, :buffer

  # @param url [String] "http://127.0.0.1:1234" or "unix:///path"
  # @param receive_buffer [Integer, nil] bytes; a small one makes a slow reader visible early
  def self.open(url, receive_buffer: nil)
    client = new(url, receive_buffer: receive_buffer)
    return client unless block_given?
    begin
      yield client
    ensure
      client.close
    end
  end

  # Ruby connects without blocking. For a Unix socket whose queue is full it then says that it is connected, and the
  # first write fails (ENOTCONN). So Unix sockets connect as the system does it: the kernel waits for room.
  # @return [Socket]
  def self.connect(url, receive_buffer: nil)
    address = sockaddr(url)
    socket = Socket.new(address.afamily, :STREAM)
    socket.setsockopt(:SOCKET, :RCVBUF, receive_buffer) if receive_buffer
    socket.setsockopt(:TCP, :NODELAY, true) if address.ip?
    socket.setsockopt(:SOCKET, :SNDTIMEO, [DEADLINE, 0].pack("l!l!")) if address.unix?
    socket.nonblock(!address.unix?) { socket.connect(address) }
    socket
  end

  def self.sockaddr(url)
    return Addrinfo.unix(url.delete_prefix("unix://")) if url.start_with?("unix://")
    match = %r{\Ahttps?://\[?([^\]/]+?)\]?:(\d+)\z}.match(url) or raise ArgumentError, url
    Addrinfo.tcp(match[1], match[2].to_i)
  end

  def initialize(url, receive_buffer: nil)
    @socket = self.class.connect(url, receive_buffer: receive_buffer)
    @buffer = String.new(encoding: Encoding::BINARY)
    @eof = false
  end

  # Sends all bytes, waiting for room in the socket.
  def write(bytes, timeout: DEADLINE)
    rest = bytes.b
    until rest.empty?
      sent = @socket.write_nonblock(rest, exception: false)
      if sent == :wait_writable
        @socket.wait_writable(timeout) or raise Timeout, "the server takes no more bytes"
      else
        rest = rest.byteslice(sent, rest.bytesize - sent)
      end
    end
    self
  end

  # Sends the bytes that the socket takes at once.
  # @return [Integer] bytes sent, 0 when the socket is full
  def write_some(bytes)
    sent = @socket.write_nonblock(bytes, exception: false)
    sent == :wait_writable ? 0 : sent
  end

  # @param head [Boolean] the response answers a HEAD request
  # @param interim [Boolean] return 1xx responses too instead of skipping them
  # @return [Response]
  # @raise [Timeout, ResponseParser::Malformed, EOFError, SystemCallError]
  def response(head: false, interim: false, timeout: DEADLINE)
    deadline = now + timeout
    loop do
      response = ResponseParser.take(@buffer, head: head, eof: @eof)
      return response if response && (interim || !response.interim?)
      next if response
      raise EOFError, "closed without a response" if @eof
      fill(deadline - now)
    end
  end

  # Sends a request and reads its response.
  def request(bytes, **options)
    write(bytes)
    response(**options)
  end

  # @return [Boolean] true when the server closed without another byte
  # @raise [Timeout] it neither closed nor sent anything
  def closed?(timeout: DEADLINE)
    fill(timeout) until @eof || !@buffer.empty?
    @buffer.empty?
  end

  # Reads the bytes that are there, or that come before the timeout.
  # @return [String, nil] bytes, nil at the end of the stream
  def read_some(timeout: DEADLINE)
    fill(timeout) while @buffer.empty? && !@eof
    return nil if @buffer.empty?
    @buffer.slice!(0, @buffer.bytesize)
  end

  # Reads until the text has come. {#response} still has everything.
  # @raise [Timeout, EOFError]
  def await(text, timeout: DEADLINE)
    deadline = now + timeout
    until @buffer.include?(text)
      raise EOFError, "closed before #{text.inspect}" if @eof
      fill(deadline - now)
    end
    self
  end

  # Reads until the server closes.
  # @return [String]
  def read_all(timeout: DEADLINE)
    deadline = now + timeout
    fill(deadline - now) until @eof
    @buffer.slice!(0, @buffer.bytesize)
  end

  # Shuts down the sending side: the server sees the end of the stream, and reading continues.
  def half_close
    @socket.shutdown(:WR)
    self
  rescue Errno::ENOTCONN
    self # the server has ended it meanwhile; its last bytes can still be read
  end

  # Closes with a reset instead of a FIN.
  def reset
    @socket.setsockopt(Socket::Option.linger(true, 0))
    @socket.close
  end

  def close
    @socket.close unless @socket.closed?
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def fill(timeout)
    raise Timeout, "nothing from the server; so far: #{@buffer[0, 300].inspect}" if timeout <= 0
    chunk = @socket.read_nonblock(65_536, exception: false)
    case chunk
    when :wait_readable
      @socket.wait_readable(timeout) or
        raise Timeout, "nothing from the server; so far: #{@buffer[0, 300].inspect}"
    when nil then @eof = true
    else @buffer << chunk
    end
  end
end
