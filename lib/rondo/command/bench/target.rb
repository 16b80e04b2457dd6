# frozen_string_literal: true

# Where the requests of `rondo bench` go, and what they are. Only this machine: it is no tool to point at
# somebody else's.
# SPDX-License-Identifier: MIT

require "socket"
require "timeout"
require "uri"

module Rondo
  class Bench
    # A loopback address with a port.
    class Target
      # Of one plain answer: seconds until it must be complete, and bytes of it at most.
      PATIENCE = 60
      MOST_BYTES = 256 << 20
      AGENT = "rondo-bench/#{VERSION}".freeze

      # What a plain request was answered.
      #
      # @!attribute status [Integer]
      # @!attribute bytes [Integer] of the whole answer
      # @!attribute server [String, nil] what it calls itself
      # @!attribute location [String, nil] where a redirect leads
      Answer = Struct.new(:status, :bytes, :server, :location, keyword_init: true)

      # @param text [String] an URL
      # @return [Target]
      # @raise [Refused] it is none, or leads to another machine
      def self.parse(text)
        uri = URI.parse(text)
        raise Refused, "#{text}: only http:// can be measured" unless uri.scheme&.casecmp?("http") && uri.host
        raise Refused, "#{text}: a user name in the address is not obeyed" if uri.userinfo
        raise Refused, "#{text}: #{uri.port} is not a port" unless uri.port.between?(1, 65_535)

        new(loopback(uri.hostname, text), uri.port, uri.request_uri, name: uri.hostname)
      rescue URI::InvalidURIError
        raise Refused, "#{text.inspect} is not an address"
      end

      # Each address of the name has to be of this machine.
      def self.loopback(host, text)
        found = Timeout.timeout(10) { Addrinfo.getaddrinfo(host, nil, nil, :STREAM) }
        unless found.any? && found.all? { |address| address.ipv4_loopback? || address.ipv6_loopback? }
          raise Refused, "#{text}: only loopback addresses of this machine are measured, " \
                         "as http://127.0.0.1:9292/"
        end

        (found.find(&:ipv4?) || found.first).ip_address
      rescue SocketError, Timeout::Error
        raise Refused, "#{text}: the name #{host} is not known"
      end
      private_class_method :loopback

      # @return [String] an address
      attr_reader :host
      # @return [Integer]
      attr_reader :port
      # @return [String]
      attr_reader :path

      # @param name [String] for the Host field
      def initialize(host, port, path = "/", name: host)
        @host = host
        @port = port
        @path = path
        @name = name
      end

      # @return [String]
      def to_s
        "http://#{authority}#{path}"
      end

      # @param last [Boolean] whether the connection ends behind it
      # @param headers [Array<String>] further fields
      # @return [String] a whole request
      def request(path, headers, last: false)
        fields = ["Host: #{authority}", "User-Agent: #{AGENT}", "Accept: */*", *headers, *("Connection: close" if last)]
        "GET #{path} HTTP/1.1\r\n#{fields.join("\r\n")}\r\n\r\n".b
      end

      # Asks once.
      #
      # @return [Answer]
      # @raise [Refused] nobody answers, or not with HTTP/1
      # @raise [SystemCallError] nobody listens
      def ask(path, headers, patience: PATIENCE)
        over = ProcessLoop.now + patience
        Socket.tcp(@host, @port, connect_timeout: patience) do |socket|
          socket.write(request(path, headers, last: true))
          parse(path, *read(socket, over, path, patience))
        end
      rescue IOError
        raise Refused, "#{authority}#{path}: the connection ended before the answer"
      end

      private

      def authority
        host = @name.include?(":") ? "[#{@name}]" : @name
        "#{host}:#{@port}"
      end

      # Keeps the head, counts the rest.
      def read(socket, over, path, patience)
        head = +"".b
        bytes = 0
        loop do
          raise Refused, "#{authority}#{path}: no answer within #{patience} s" unless
            socket.wait_readable([over - ProcessLoop.now, 0].max)

          piece = socket.readpartial(65_536)
          bytes += piece.bytesize
          head << piece if head.bytesize < 65_536
          raise Refused, "#{authority}#{path}: the answer is longer than #{MOST_BYTES >> 20} MiB" if bytes > MOST_BYTES
        end
      rescue EOFError
        [head, bytes]
      end

      def parse(path, head, bytes)
        fields = head.split("\r\n\r\n", 2).first.to_s
        status = head[%r{\AHTTP/1\.[01] (\d{3})[ \r]}, 1] or
          raise Refused, "#{authority}#{path}: what listens there does not answer with HTTP/1"
        Answer.new(status: status.to_i, bytes: bytes, server: field(fields, "server"),
                   location: field(fields, "location"))
      end

      def field(fields, name)
        fields[/^#{name}:[ \t]*([ -~]{0,200})/i, 1]&.strip
      end
    end
  end
end
