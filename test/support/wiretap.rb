# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A listener between a client and a server: it keeps the heads of requests and answers that pass, and
# cuts answers off where a test wants it. For requests without bodies, and answers that say their length.
#
#   Wiretap.open(server.url) do |line|
#     line.cut(1000)                  # the next answer, after so many bytes of its body
#     ... line.url ...
#     line.exchanges.map(&:range)     # => [nil, "bytes=1000-"]
#   end

require "socket"
require "uri"

class Wiretap
  # Both heads as they were on the wire.
  Exchange = Struct.new(:request, :answer) do
    def path
      request[/\A\S+ (\S+)/, 1]
    end

    def range
      requested("range")
    end

    # @return [String, nil] value of a field of the request
    def requested(field)
      request[/^#{field}: *([^\r]*)/i, 1]
    end

    # @return [String, nil] value of a field of the answer
    def answered(field)
      answer[/^#{field}: *([^\r]*)/i, 1]
    end

    def status
      answer[/\A\S+ (\d+)/, 1].to_i
    end

    def body_size
      request.start_with?("HEAD ") || status == 304 ? 0 : answered("content-length").to_i
    end
  end

  attr_reader :url

  def self.open(url)
    line = new(url)
    yield line
  ensure
    line&.close
  end

  # @param url [String] of the server
  def initialize(url)
    @server = URI(url)
    @listener = TCPServer.new("127.0.0.1", 0)
    @url = "http://127.0.0.1:#{@listener.addr[1]}"
    @mutex = Mutex.new
    @exchanges = []
    @cuts = []
    @sockets = []
    @threads = [Thread.new { accept }]
  end

  # @param sizes [Array<Integer>] bytes of body after which the next answers are cut, one each
  def cut(*sizes)
    @mutex.synchronize { @cuts.concat(sizes) }
  end

  # @param path [String, nil] only exchanges of this path
  # @return [Array<Exchange>] in the order in which their answers began
  def exchanges(path = nil)
    all = @mutex.synchronize { @exchanges.dup }
    path ? all.select { |exchange| exchange.path == path } : all
  end

  def close
    @listener.close
    @threads.first.join
    @sockets.each(&:close)
    @threads.each(&:join)
  end

  private

  def accept
    loop do
      client = @listener.accept
      @sockets << client
      @threads << Thread.new { serve(client) }
    end
  rescue IOError, Errno::EBADF
    nil # closed
  end

  def serve(client)
    server = TCPSocket.new(@server.host, @server.port)
    while (request = client.gets("\r\n\r\n"))
      server.write(request)
      break unless (answer = server.gets("\r\n\r\n")) && pass(server, client, Exchange.new(request, answer))
    end
  rescue IOError, SystemCallError
    nil # one of them has gone
  ensure
    [client, server].compact.each(&:close)
  end

  # @return [Boolean] whether the connection continues
  def pass(server, client, exchange)
    size = exchange.body_size
    limit = @mutex.synchronize { @exchanges.push(exchange) && @cuts.shift } || size
    client.write(exchange.answer)
    IO.copy_stream(server, client, [limit, size].min)
    limit >= size
  end
end
