# frozen_string_literal: true

# Shared by the tests of event streams: a handler that tells the test its callbacks, and a client that waits for what it
# expects.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "timeout"
require "support/event_stream"

class SSECase < RackCase
  ASK = "GET %s HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n"

  # Puts every callback into `told`, and the client into `clients`.
  class Handler
    attr_reader :told, :clients

    def initialize(&on_open)
      @told = Queue.new
      @clients = Queue.new
      @on_open = on_open
    end

    def on_open(client)
      @told << "open"
      @on_open&.call(client)
      @clients << client
    end

    def on_message(_client, data) = @told << "message #{data}"
    def on_drained(_client) = nil

    def on_shutdown(client)
      @told << "shutdown"
      client.write("last words")
    end

    def on_close(client)
      @told << "close #{client.close_code} #{client.close_reason} #{client.open?} #{client.write("x")} #{client.pending}".squeeze(" ")
    end

    # @return [String] the next callback
    def hear = Timeout.timeout(RackCase::PATIENCE) { @told.pop }
    def client = Timeout.timeout(RackCase::PATIENCE) { @clients.pop }
  end

  # Reads a stream of events.
  class Reader
    attr_reader :head, :stream

    def initialize(url, request, receive_buffer: nil)
      @raw = RawClient.new(url, receive_buffer: receive_buffer)
      @raw.write(request)
      bytes = +"".b
      bytes << (@raw.read_some || raise("closed: #{bytes}")) until bytes.include?("\r\n\r\n")
      @head, rest = bytes.split("\r\n\r\n", 2)
      @stream = EventStream.new.feed(rest)
    end

    # @return [EventStream::Event, nil] the next one; nil: the stream has ended
    def hear
      while @stream.events.empty?
        bytes = @raw.read_some or return
        @stream.feed(bytes)
      end
      @stream.events.shift
    end

    # @return [Array(String, String, String), nil]
    def hear_all = hear&.to_a

    def read_comment
      @stream.feed(@raw.read_some) while @stream.comments.zero?
    end

    def write(bytes) = @raw.write(bytes)
    def half_close = @raw.half_close
    def close = @raw.close
  end

  def setup
    super
    @readers = []
  end

  def teardown
    @readers.each(&:close)
    super
  end

  # @return [Proc] an application that upgrades each request that allows it
  def app_of(handler, status: 200, headers: {})
    lambda do |env|
      env["rack.upgrade"] = handler if env["rack.upgrade?"]
      [status, headers.dup, []]
    end
  end

  def serve_stream(handler, app: app_of(handler), **options)
    start(app, **options)
    read
  end

  def read(url = @running.last.url, path: "/", request: format(ASK, path), **options)
    Reader.new(url, request, **options).tap { |reader| @readers << reader }
  end
end
