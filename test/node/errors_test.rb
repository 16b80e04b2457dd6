# frozen_string_literal: true

# What goes wrong while the Node engine serves: the process survives it, says one thing in the log, and keeps within its
# limits.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/raw_client"
require "support/websocket_peer"

class NodeErrorsTest < Minitest::Test
  APP = File.expand_path("errors.ru", __dir__)
  PENDING = 1_048_576 # max_pending_bytes

  def self.server
    @server ||= NodeProcess.new(APP).tap { |server| Minitest.after_run { server.stop } }
  end

  def server
    self.class.server
  end

  def get(path, fields = "")
    RawClient.open(server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n#{fields}\r\n") }
  end

  # A request that is answered after what went wrong.
  def teardown
    assert_equal "fine", get("/").body
  end

  def test_an_exception_is_a_500_and_a_line
    { "/raise" => /GET \/raise: RuntimeError: it failed\n/, "/no-method" => /NoMethodError: undefined method .nothing/,
      "/throw" => /GET \/throw: /, "/stack" => /GET \/stack: /, "/nil" => /ResponseError: the application did not return/,
      "/part" => /a part of the body is not a String: 7/, "/name" => /a header name is not a token/,
      "/late" => /GET \/late: RuntimeError: later/ }.each do |path, line|
      answer = get(path)
      assert_equal [500, "Internal Server Error\n"], [answer.status, answer.body], path
      server.wait_for_log(line)
    end
  end

  def test_a_backtrace_names_the_application
    get("/raise")
    line = File.foreach(APP).with_index(1).find { |text, _| text.include?('raise "it failed"') }.last
    server.wait_for_log(/RuntimeError: it failed\n    #{APP}:#{line}:in 'plain'\n/)
  end

  def test_an_exception_outside_of_a_request
    assert_equal 200, get("/timer").status
    server.wait_for_log(/outside of a request: RuntimeError: in a timer/)
  end

  def test_a_body_that_raises_ends_its_connection
    RawClient.open(server.url) do |client|
      assert_raises(EOFError, Errno::ECONNRESET, ResponseParser::Malformed) { client.request("GET /body HTTP/1.1\r\nhost: a\r\n\r\n") }
    end
    server.wait_for_log(/GET \/body: RuntimeError: the body failed/)
    assert_equal "1", get("/closed").body
  end

  def test_a_promise_is_waited_for
    assert_equal [201, "later"], get("/promise").then { |answer| [answer.status, answer.body] }
  end

  def test_a_callback_that_raises_closes_its_connection
    peer = WebsocketPeer.new(server.url, "talk")
    assert_equal 1011, peer.say("raise").hear_close.first
    server.wait_for_log(/Talker#on_message: RuntimeError: a callback failed/)
  end

  def test_a_callback_that_raises_in_a_handler_without_a_name
    %w[now promise].each do |word|
      before = server.log.bytesize
      peer = WebsocketPeer.new(server.url, "nameless")
      assert_equal 1011, peer.say(word).hear_close.first
      peer.close
      server.wait_for_log(/\?#on_message: RuntimeError: a (?:callback|promise) failed/, from: before)
      server.wait_for_log(/somebody without a name was closed with 1011/, from: before)
    end
  end

  # It reads nothing: what waits for it is bounded, and it is closed.
  def test_a_stalled_websocket
    before = server.log.bytesize
    peer = WebsocketPeer.new(server.url, "talk", receive_buffer: 4096)
    peer.say("flood")
    pending = server.wait_for_log(/a client was closed with 1013, refused; most pending: (\d+)/, from: before)[1].to_i
    assert_operator pending, :<, 2 * PENDING
  ensure
    peer&.close
  end

  # Its callback writes until a write is refused. What is written to a connection that has ended waits nowhere.
  def test_a_flood_for_clients_that_have_left
    stream = ["GET /talk?flood HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n", ""]
    websocket = [format(WebsocketPeer::HANDSHAKE, "talk", ""), WebsocketFrames.frame(WebsocketFrames::TEXT, "flood") * 2]
    100.times do
      [stream, websocket].product([true, false]).each { |(head, message), stays| leave_a_flood(head, message, stays) }
    end
  end

  # Its callback does not return: its messages wait, and at some time the client does.
  def test_messages_for_a_callback_that_waits
    client = RawClient.new(server.url)
    client.write(format(WebsocketPeer::HANDSHAKE, "talk", ""))
    client.await("\r\n\r\n")
    client.write(WebsocketFrames.frame(WebsocketFrames::TEXT, "wait"))
    messages = WebsocketFrames.frame(WebsocketFrames::TEXT, "x" * 10_000) * 100
    sent = 0
    while sent < 40_000_000 && client.socket.wait_writable(2)
      part = client.socket.write_nonblock(messages.byteslice((sent % messages.bytesize)..), exception: false)
      sent += part if part.is_a?(Integer)
    end
    assert_operator sent, :<, 40_000_000
  rescue Errno::ECONNRESET, Errno::EPIPE
    raise unless NodeProcess::UWS # it cannot stop to read, and ends the connection
  ensure
    client&.close
  end

  # Its callback has not returned when the server stops.
  def test_a_stop_beside_a_callback_that_waits
    server = NodeProcess.new(APP)
    peer = WebsocketPeer.new(server.url, "talk").say("wait")
    peer.say("more")
    assert_equal "fine", RawClient.open(server.url) { |client| client.request("GET / HTTP/1.1\r\nhost: a\r\n\r\n").body }
    server.stop
    assert_includes server.log, "- Goodbye!"
  ensure
    peer&.close
  end

  # Node knows none of these connections any more.
  def test_a_stop_beside_connections_that_node_gave_away
    server = NodeProcess.new(APP)
    clients = Array.new(2) { RawClient.new(server.url) }
    clients[0].write("CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n").await(NodeProcess::UWS ? "505 HTTP Version" : "405 Method Not Allowed")
    clients[1].write("POST /size HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\ncontent-length: 10\r\n\r\nabc")
    assert_equal "fine", RawClient.open(server.url) { |client| client.request("GET / HTTP/1.1\r\nhost: a\r\n\r\n").body }
    server.stop
    assert_includes server.log, "- Goodbye!"
  ensure
    clients&.each(&:close)
  end

  # Each of its parts takes more memory than its byte.
  def test_a_body_of_tiny_chunks
    server = NodeProcess.new(APP, args: ["--set", "total_body_bytes=8m"])
    client = RawClient.new(server.url)
    client.write("POST /size HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
    chunks = "1\r\na\r\n" * 10_000
    5.times { client.write(chunks) unless client.socket.wait_readable(0) }
    assert_equal 507, client.response.status
  rescue Errno::ECONNRESET, Errno::EPIPE
    assert_equal 507, client.response.status
  ensure
    client&.close
    server&.stop
  end

  def test_a_stalled_event_stream
    client = RawClient.new(server.url, receive_buffer: 4096)
    before = server.log.bytesize
    client.write("GET /talk?flood HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n")
    server.wait_for_log(/an event stream was closed with 1013\n/, from: before)
  ensure
    client&.close
  end

  def test_a_stalled_subscriber_holds_up_nobody
    before = server.log.bytesize
    slow = WebsocketPeer.new(server.url, "talk", receive_buffer: 4096).say("join")
    quick = WebsocketPeer.new(server.url, "talk").say("join")
    assert_equal "joined", quick.hear
    300.times { |number| quick.say("all #{number.to_s.rjust(16_000, "x")}") && quick.hear }
    server.wait_for_log(/a subscriber was closed with 1013\n/, from: before)
  ensure
    [slow, quick].each { |peer| peer&.close }
  end

  def test_a_body_that_is_too_large_is_refused_before_it_comes
    answer = RawClient.open(server.url) { |client| client.request("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1073741825\r\n\r\n") }
    assert_equal 413, answer.status
  end

  def test_a_client_that_leaves_in_its_body
    RawClient.open(server.url) { |client| client.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc") }
  end

  # Node does not read it: a client that stops in its middle, or that sends it in many parts.
  def test_the_body_of_a_request_that_asks_for_an_upgrade
    head = "POST /size HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: "
    assert_equal(["0", "5"], ["0\r\n\r\n", "5\r\n\r\nabcde+++"].map { |rest| RawClient.open(server.url) { |client| client.request(head + rest).body } })
    assert_equal 413, RawClient.open(server.url) { |client| client.request("#{head}1073741825\r\n\r\n") }.status
    RawClient.open(server.url) do |client|
      client.write("#{head}3000000\r\n\r\n")
      300.times { client.write("x" * 10_000) }
      assert_equal "3000000", client.response.body
    end
    RawClient.open(server.url) { |client| client.write("#{head}10\r\n\r\nabc") }
  end

  def test_a_request_for_an_upgrade_behind_another_one
    client = RawClient.new(server.url)
    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n")
    assert_equal %w[fine fine], Array.new(2) { client.response.body }
  ensure
    client&.close
  end

  def test_a_handshake_whose_answer_is_not_valid
    client = RawClient.new(server.url)
    client.write(format(WebsocketPeer::HANDSHAKE, "split", ""))
    assert_equal 500, client.response.status
    server.wait_for_log(%r{GET /split: .*a header value has a control byte})
  ensure
    client&.close
  end

  def test_early_hints_that_are_not_valid
    return assert_includes(assert_raises(ServerProcess::Failure) { NodeProcess.new(APP, args: ["--early-hints"]) }.message, "--early-hints needs --engine node") if NodeProcess::UWS

    server = NodeProcess.new(APP, args: ["--early-hints"])
    answer = RawClient.open(server.url) { |client| client.request("GET /hints HTTP/1.1\r\nhost: a\r\n\r\n") }
    assert_equal 500, answer.status
  ensure
    server&.stop
  end

  # Together they hold more than total_output_bytes.
  def test_many_clients_that_do_not_take_their_answers
    stalled = Array.new(70) do
      RawClient.new(server.url, receive_buffer: 4096).tap { |client| client.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n") }
    end
    server.wait_for_log(/connections were closed: clients do not take their answers \(total_output_bytes\)/)
  ensure
    stalled&.each(&:close)
  end

  def test_a_large_body_arrives_whole
    body = "0123456789abcdef" * 200_000
    answer = RawClient.open(server.url) { |client| client.request("POST /size HTTP/1.1\r\nhost: a\r\ncontent-length: #{body.bytesize}\r\n\r\n#{body}") }
    assert_equal body.bytesize.to_s, answer.body
  end

  def test_a_large_answer_to_a_slow_reader_is_followed_by_the_next_one
    client = RawClient.new(server.url, receive_buffer: 4096)
    second = NodeProcess::UWS ? "" : "GET / HTTP/1.1\r\nhost: a\r\n\r\n" # it ends connections whose clients do not wait
    client.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n#{second}")
    assert_equal 8_000_000, client.response.body.bytesize
    assert_equal "fine", client.response.body unless NodeProcess::UWS
    assert_equal "fine", client.request("GET / HTTP/1.1\r\nhost: a\r\n\r\n").body
  ensure
    client&.close
  end

  def test_many_requests_in_one_write
    client = RawClient.new(server.url)
    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n" * 500)
    assert_equal ["fine"] * 500, Array.new(500) { client.response.body }
  ensure
    client&.close
  end

  def test_a_client_that_leaves_in_a_large_answer
    RawClient.open(server.url, receive_buffer: 4096) { |client| client.write("GET /large HTTP/1.1\r\nhost: a\r\n\r\n").await("HTTP") }
  end

  def test_a_handler_without_a_name_for_an_ordinary_request
    assert_equal 500, get("/nameless").status
    server.wait_for_log(%r{GET /nameless: RuntimeError: no name})
  end

  def test_a_handler_for_an_ordinary_request_is_ignored
    assert_equal [200, "plain"], get("/talk").then { |answer| [answer.status, answer.body] }
    server.wait_for_log(/rack.upgrade was set to Talker for a request that cannot be upgraded/)
  end

  private

  # @param stays [Boolean] whether the client reads what comes first
  def leave_a_flood(head, message, stays)
    client = RawClient.new(server.url, receive_buffer: 4096)
    client.write(head).await("\r\n\r\n")
    client.write(message)
    client.await("xxxx") if stays
  rescue Errno::ECONNRESET, Errno::EPIPE, EOFError
    nil # the server was quicker
  ensure
    client&.close
  end
end
