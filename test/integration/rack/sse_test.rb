# frozen_string_literal: true

# Server-Sent Events by rack.upgrade: which requests, the bytes that are sent, the callbacks, the end.
# SPDX-License-Identifier: MIT

require_relative "sse_case"
require "support/server_process"
require "support/websocket_frames"

class SSETest < SSECase
  F = WebsocketFrames

  # ---- the upgrade

  def seen(request)
    if @running.empty?
      @seen = Queue.new
      start do |env|
        @seen << env.fetch("rack.upgrade?")
        [204, {}, []]
      end
    end
    connect.request(request, head: request.start_with?("HEAD"))
    @seen.pop
  end

  def test_which_requests_can_be_upgraded
    accept = { "Accept" => "text/html, Text/Event-Stream;q=0.5" }
    2.times { assert_equal :sse, seen(bytes("GET", "/", accept)) }
    assert_equal :sse, seen(bytes("GET", "/", accept, version: "1.0"))
    assert_equal :sse, seen(bytes("GET", "/", { "Accept" => ["*/*", "text/event-stream"] }))
    assert_nil seen(bytes("HEAD", "/", accept)), "the block of fields is the same"
    assert_nil seen(bytes("POST", "/", accept, "x"))
    assert_nil seen(bytes("GET", "/", accept, "x"))
    assert_nil seen(bytes("GET", "/", { "Accept" => "text/event-stream;q=0" }))
    assert_nil seen(bytes("GET", "/", { "Accept" => "*/*" }))
    handshake = { "Connection" => "Upgrade", "Upgrade" => "websocket", "Sec-WebSocket-Version" => "13",
                  "Sec-WebSocket-Key" => "dGhlIHNhbXBsZSBub25jZQ==", "Accept" => "text/event-stream" }
    assert_equal :websocket, seen(bytes("GET", "/", handshake))
    assert_equal :sse, seen(bytes("GET", "/", handshake.merge("Sec-WebSocket-Version" => "12")))
  end

  # The env of this request may be made from that of an earlier one with the same fields.
  def test_the_same_fields_by_another_method_first
    accept = { "Accept" => "text/event-stream" }
    3.times { assert_nil seen(bytes("HEAD", "/", accept)) }
    2.times { assert_equal :sse, seen(bytes("GET", "/", accept)) }
    3.times { assert_nil seen(bytes("GET", "/", { "Accept" => "text/html" })) }
  end

  def test_the_answer
    body = Body.new("never sent")
    handler = Handler.new
    reader = serve_stream(handler, lint: false, app: lambda { |env|
      env["rack.upgrade"] = handler
      [0, { "set-cookie" => %w[a=b c=d], "content-type" => "text/html", "content-length" => "5",
            "cache-control" => "no-cache, no-transform" }, body]
    })
    head = reader.head.lines(chomp: true)
    assert_equal "HTTP/1.1 200 OK", head.first
    assert_equal ["set-cookie: a=b", "set-cookie: c=d", "cache-control: no-cache, no-transform",
                  "content-type: text/event-stream", "x-accel-buffering: no", "connection: close"], head[1..6]
    assert_equal 8, head.size
    handler.client
    assert_closed(body)
    assert_nil reader.stream.events.shift
  end

  def test_without_the_handler_it_is_a_request_like_any_other
    handler = Handler.new
    start(app_of(handler, status: 303, headers: { "location" => "/" }))
    2.times do
      client = connect
      2.times { assert_equal 303, client.request(format(ASK, "/")).status }
    end
    assert_empty handler.told
  end

  # ---- the client

  def test_the_life_of_a_client
    handler = Handler.new { |client| client.write("welcome") }
    reader = serve_stream(handler)
    assert_equal ["message", "welcome", ""], reader.hear_all
    client = handler.client
    assert_equal [:sse, true, handler], [client.protocol, client.open?, client.handler]
    assert client.write("hällo\r\nto\rall\n")
    assert_equal "hällo\nto\nall\n", reader.hear.data
    assert client.write({ "a" => [1, nil] })
    assert_equal '{"a":[1,null]}', reader.hear.data
    assert client.event("x", event: "tick", id: 7, retry: 1500)
    assert_equal [%w[tick x 7], 1500], [reader.hear_all, reader.stream.retry]
    assert client.event(nil, id: "8", retry: 0)
    assert client.event("y", event: :tock)
    assert_equal [%w[tock y 8], 0], [reader.hear_all, reader.stream.retry]
    assert_nil client.close(3001, "enough")
    assert_nil reader.hear
    assert_equal [false, false, -1], [client.write("x"), client.event("x"), client.pending]
    reader.close
    assert_equal ["open", "close 3001 enough false false -1"], Array.new(2) { handler.hear }
  end

  def test_text_only
    handler = Handler.new
    reader = serve_stream(handler)
    client = handler.client
    ["\xff", "\xff".b, "é".encode("ISO-8859-1"), "abc".encode("UTF-16LE")].each do |text|
      assert_raises(ArgumentError) { client.write(text) }
      assert_raises(ArgumentError) { client.event(text) }
    end
    assert_raises(TypeError) { client.write(1) }
    assert_raises(TypeError) { client.write(nil) }
    client.write("é".b)
    client.write("e".encode("US-ASCII"))
    assert_equal %w[é e], Array.new(2) { reader.hear.data }
  end

  def test_what_no_field_can_hold
    handler = Handler.new
    reader = serve_stream(handler)
    client = handler.client
    ["a\nb", "a\r", "\r\ndata: x", "a\0", "\xff"].each do |text|
      assert_raises(ArgumentError) { client.event("x", event: text) }
      assert_raises(ArgumentError) { client.event("x", id: text) }
    end
    [-1, 1.5, "1", 2**70, true].each { |value| assert_raises(ArgumentError) { client.event("x", retry: value) } }
    assert_raises(TypeError) { client.event("x", event: []) }
    assert_raises(ArgumentError) { client.event("x", name: "y") }
    assert_raises(ArgumentError) { client.event }
    client.write("unharmed")
    assert_equal ["message", "unharmed", ""], reader.hear_all
  end

  def test_a_websocket_gets_the_data_of_an_event
    handler = Handler.new do |client|
      client.event(nil, retry: 5)
      client.event("text", event: "tick", id: 1)
      client.event("\xff".b, id: 2)
      client.event([1])
      client.close
    end
    start(app_of(handler))
    client = connect
    client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
                 "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    client.write(F.close)
    frames = F.take(client.read_all.split("\r\n\r\n", 2).last)
    assert_equal [[F::TEXT, "text"], [F::BINARY, "\xff".b], [F::TEXT, "[1]"]], frames.map { |frame| frame.to_a.first(2) }.first(3)
  end

  # ---- many at a time

  def test_many_threads
    handler = Handler.new
    reader = serve_stream(handler)
    client = handler.client
    threads = Array.new(8) { |n| Thread.new { 100.times { |m| client.event("#{n} #{m}\n" * 3, event: "t#{n}") } } }
    events = Array.new(800) { reader.hear }
    threads.each(&:join)
    events.group_by(&:type).each do |type, own|
      assert_equal(Array.new(100) { |m| "#{type[1]} #{m}\n" * 3 }, own.map(&:data))
    end
  end

  def test_a_broadcast_to_many
    handler = Handler.new
    start(app_of(handler))
    readers = Array.new(50) { read }
    clients = Array.new(50) { handler.client }
    20.times { |n| clients.each { |client| client.event("news", id: n) } }
    readers.each { |reader| assert_equal(Array.new(20, &:to_s), Array.new(20) { reader.hear.id }) }
  end

  def test_channels
    handler = Handler.new { |client| client.subscribe("sse:*", match: :redis) }
    start(app_of(handler))
    readers = Array.new(3) { read }
    client = Array.new(3) { handler.client }.first
    assert client.publish("sse:a", "one\ntwo")
    assert client.publish("sse:b", "\xff".b)
    assert Rondo.publish("sse:c", "three".b)
    assert client.publish("sse:d", { "four" => 4 })
    readers.each { |reader| assert_equal ["one\ntwo", "three", '{"four":4}'], Array.new(3) { reader.hear.data } }
  end

  def test_what_was_missed
    Rondo::PubSub.history("sse:kept", size: 10)
    handler = Handler.new { |client| client.subscribe("sse:kept") }
    first = serve_stream(handler)
    client = handler.client
    client.publish("sse:kept", "a")
    id = first.hear.id
    first.close
    %w[b c].each { |text| Rondo.publish("sse:kept", text) }
    second = read(request: format(ASK, "/").sub("\r\n\r\n", "\r\nLast-Event-ID: #{id}\r\n\r\n"))
    Rondo.publish("sse:kept", "d")
    assert_equal %w[b c d], Array.new(3) { second.hear.data }
  ensure
    Rondo::PubSub.history("sse:kept", size: 0)
  end

  # ---- how it ends

  def test_a_client_that_does_not_read
    handler = Handler.new
    start(app_of(handler), max_pending_bytes: 65_536)
    read(receive_buffer: 4096)
    client = handler.client
    most = 0
    most = [most, client.pending].max while client.write("x" * 10_000)
    assert_operator most, :<=, 65_536 + 10_010
    assert_equal ["open", "close 1013 too slow false false -1"], Array.new(2) { handler.hear }
  end

  def test_a_client_that_leaves
    handler = Handler.new
    reader = serve_stream(handler)
    handler.client.write("x")
    reader.half_close
    assert_equal "x", reader.hear.data
    assert_nil reader.hear
    read.close
    assert_equal ["close 1006 false false -1"] * 2, Array.new(4) { handler.hear }.grep(/close/)
  end

  def test_what_a_client_still_sends_is_not_read
    handler = Handler.new
    reader = serve_stream(handler)
    reader.write(format(ASK, "/other"))
    handler.client.write("x")
    assert_equal "x", reader.hear.data
    reader.half_close
    assert_nil reader.hear
    assert_equal ["open", "close 1006 false false -1"], Array.new(2) { handler.hear }
  end

  def test_an_exception_ends_its_stream_and_no_other
    handler = Handler.new { |client| raise "out of a callback" if client.env["PATH_INFO"] == "/raise" }
    other = serve_stream(handler)
    client = handler.client
    assert_nil read(path: "/raise").hear
    client.write("still here")
    assert_equal "still here", other.hear.data
    assert_includes log, "out of a callback"
    @readers.last.close
    assert_equal %w[open open close], Array.new(3) { handler.hear[/\w+/] }
  end

  def test_silence_is_filled_with_comments
    handler = Handler.new
    reader = serve_stream(handler, ping_interval_ms: 20)
    reader.read_comment
    handler.client.write("x")
    assert_equal "x", reader.hear.data
  end

  def test_last_words_at_shutdown
    handler = Handler.new
    reader = serve_stream(handler)
    handler.client
    @running.last.server.stop
    assert_equal "last words", reader.hear.data
    assert_nil reader.hear
    reader.close
    assert_equal ["open", "shutdown", "close 1001 going away false false -1"], Array.new(3) { handler.hear }
  end

  APP = <<~RUBY
    class Handler
      def on_open(client) = client.write("welcome")
      def on_shutdown(client) = client.write("last words")
    end
    run ->(env) { [200, {}, [env["rack.upgrade"] = Handler.new].first(0)] }
  RUBY

  def test_workers
    Dir.mktmpdir("rondo-sse") do |folder|
      File.write(File.join(folder, "config.ru"), APP)
      ServerProcess.run(File.join(folder, "config.ru"), args: ["-w", "2"]) do |server|
        readers = Array.new(6) { read(server.url) }
        readers.each { |reader| assert_equal "welcome", reader.hear.data }
        server.signal("USR1")
        ends = readers.map { |reader| Thread.new { [reader.hear.data, reader.hear].tap { reader.close } } }
        assert_equal [["last words", nil]] * 6, ends.map(&:value)
        assert_equal "welcome", read(server.url).hear.data
      end
    end
  end
end
