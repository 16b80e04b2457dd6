# frozen_string_literal: true

# A server in this process that makes connections, and the peers of these.
# SPDX-License-Identifier: MIT

require "support/held_port"
require "support/own_server_case"

# What the tests of outgoing connections share: a server in this process, handlers that note, peers.
class OutgoingCase < OwnServerCase
  # Notes what happens, and answers words.
  class Echo
    attr_reader :notes, :client

    def initialize
      @notes = Queue.new
    end

    def on_open(client)
      @client = client
      @notes << [:open, client.protocol, client.env]
      client.write("hello\n")
    end

    def on_message(client, data)
      client.write(data)
    end

    def on_shutdown(client)
      client.write("shutdown\n")
    end

    def on_close(client)
      @notes << [:close, client&.close_code]
    end
  end

  def setup
    super
    @echo = Echo.new
  end

  # @return [String] where a listener of this test is
  def peer(host = "127.0.0.1")
    @peer = TCPServer.new(host, 0)
    @sockets << @peer
    "tcp://#{host.include?(":") ? "[#{host}]" : host}:#{@peer.addr[1]}"
  end

  # @return [String] where nobody listens
  def nowhere
    @sockets << (port = HeldPort.new)
    "tcp://127.0.0.1:#{port.number}"
  end

  def accept(listener = @peer)
    socket = within { listener.accept }
    @sockets << socket
    socket
  end

  def note(handler = @echo)
    within { handler.notes.pop }
  end

  def assert_failed(pattern, handler = @echo)
    assert_equal [:close, nil], note(handler)
    level, text = within { @log.lines.pop }
    assert_equal :warn, level
    assert_match pattern, text
    assert_empty handler.notes
  end

  def connect(url, handler = @echo, **options)
    assert_same handler, @server.connect(url, handler: handler, **options)
  end
end
