# frozen_string_literal: true

# One request to a control server, over TCP or a Unix socket; used by `rondo ctl` and `rondo top`.
# SPDX-License-Identifier: MIT

require "json"
require "socket"
require "rondo"

module Rondo
  # Speaks to the control server of another process.
  # @api private
  class ControlClient
    # No server answers, or it is not a control server: a message of one line.
    class Unreachable < Error; end

    # @!attribute status [Integer]
    # @!attribute body [String]
    Response = Struct.new(:status, :body) do
      # @return [Boolean]
      def ok?
        status == 200
      end

      # @return [String] what is wrong, in a few words
      def reason
        JSON.parse(body).fetch("error")
      rescue JSON::ParserError, KeyError, TypeError
        body.strip.empty? ? "status #{status}" : body.strip
      end
    end

    # Seconds for connecting, and for the whole answer: more than the server gives Ruby.
    CONNECT = 5
    ANSWER = 15
    ANSWER_BYTES = 64 << 20

    # @return [String]
    attr_reader :url

    # @param url [String] tcp://HOST:PORT or unix:///PATH
    # @param token [String, nil]
    # @raise [AddressError]
    def initialize(url, token = nil)
      @url = url
      @address = place(url) or
        raise AddressError, "#{url} is not the address of a control server: expected tcp://HOST:PORT or unix://PATH"
      @token = token
    end

    # @param path [String] of a page, "/stats"
    # @return [Response]
    # @raise [Unreachable]
    def get(path)
      request("GET", path)
    end

    # @param path [String] of a verb, "/stop"
    # @return [Response]
    # @raise [Unreachable]
    def post(path)
      request("POST", path)
    end

    # Yields the events of a stream, each as its lines, until the server ends it.
    # @param path [String] "/events"
    # @param most [Integer] bytes of one event
    # @param silence [Numeric] seconds without a byte, after which the stream counts as ended
    # @yieldparam event [String]
    # @return [void]
    # @raise [Unreachable] no server, no stream, or an event that is too long
    def stream(path, most, silence)
      socket = connect
      socket.write(head("GET", path).sub("HTTP/1.1", "HTTP/1.0")) # an answer without chunks
      rest = +"".b
      begun = false
      while socket.wait_readable(silence) && (part = socket.readpartial(65_536))
        rest << part
        begun ||= take_head(rest)
        yield rest.slice!(/\A.*?\n\n/mn).chomp("\n\n") while begun && rest.include?("\n\n")
        raise Unreachable, "#{@url} sends more than #{most} bytes at once" if rest.bytesize > most
      end
    rescue EOFError
      nil
    rescue SystemCallError, SocketError, IOError => e
      raise Unreachable, "no control server at #{@url}: #{reason(e)}"
    ensure
      socket&.close
    end

    private

    # Nothing is sent in the clear to an address that says ssl: a control server has no TLS.
    def place(url)
      address = Address.parse(url)
      address unless address[:tls]
    rescue AddressError
      nil
    end

    def take_head(rest)
      head = rest.slice!(/\A.*?\r\n\r\n/mn) or return false
      return true if head.match?(%r{\AHTTP/1\.[01] 200 }n)

      raise Unreachable, "#{@url} has no events: #{head.lines.first.strip}"
    end

    def request(method, path)
      socket = connect
      socket.write(head(method, path))
      parse(read_all(socket))
    rescue SystemCallError, SocketError, IOError => e
      raise Unreachable, "no control server at #{@url}: #{reason(e)}"
    ensure
      socket&.close
    end

    def connect
      return UNIXSocket.new(@address[:path].sub(/\A@/, "\0")) if @address[:kind] == :unix

      Socket.tcp(reachable_host, @address[:port], connect_timeout: CONNECT)
    end

    # A server that listens on every address is reached at the loopback address.
    def reachable_host
      { "0.0.0.0" => "127.0.0.1", "::" => "::1" }.fetch(@address[:host], @address[:host])
    end

    def head(method, path)
      token = "Authorization: Bearer #{@token}\r\n" if @token
      length = "Content-Length: 0\r\n" if method == "POST"
      "#{method} #{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n#{token}#{length}\r\n"
    end

    def read_all(socket)
      text = +"".b
      limit = now + ANSWER
      loop do
        raise Unreachable, "no answer from #{@url} within #{ANSWER} s" unless socket.wait_readable([limit - now, 0].max)

        text << socket.readpartial(65_536)
        raise Unreachable, "the answer from #{@url} is too long" if text.bytesize > ANSWER_BYTES
      end
    rescue EOFError
      text
    end

    def parse(text)
      match = %r{\AHTTP/1\.[01] (\d{3}).*?\r\n\r\n}m.match(text) or
        raise Unreachable, "the server at #{@url} is not a control server"
      Response.new(match[1].to_i, match.post_match.force_encoding(Encoding::UTF_8))
    end

    def reason(error)
      error.is_a?(SystemCallError) ? SystemCallError.new(nil, error.errno).message : error.message
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end
