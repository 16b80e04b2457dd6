# frozen_string_literal: true

# Clients of the Node engine that leave, and answers that cannot come to their end: everything is closed, once.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/raw_client"
require "support/waiting"
require "support/websocket_peer"
require "tempfile"

class NodeLeavingTest < Minitest::Test
  include Waiting

  APP = File.expand_path("waiting.ru", __dir__)

  def setup
    @server = NodeProcess.new(APP)
  end

  def teardown
    @server.stop
  end

  def get(path)
    RawClient.open(@server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  # Sends a request, and leaves when the application has it.
  def leave(path, fields = "", method: "GET", waiting: 1, by: :reset)
    client = RawClient.new(@server.url)
    client.write("#{method} #{path} HTTP/1.1\r\nhost: a\r\n#{fields}\r\n")
    wait_until { get("/waiting") == waiting.to_s }
    client.public_send(by)
  end

  def wait_for_notes(*lines)
    wait_until { get("/notes").split("\n").sort == lines.sort }
  end

  # One small file that is asked for has no end as long as its descriptor is open.
  def test_a_late_answer_to_a_client_that_has_left
    leave("/wait?one")
    leave("/file?#{__FILE__}", waiting: 2)
    before = @server.descriptors
    get("/go")
    wait_for_notes("one closed", "one finished 200 Rondo::ClientGone", "file finished 200 Rondo::ClientGone")
    wait_until { @server.descriptors <= before }
  end

  def test_a_late_handler_for_a_client_that_has_left
    leave("/later-visit?one", "accept: text/event-stream\r\n")
    get("/go")
    wait_for_notes("one closed", "one finished 200 Rondo::ClientGone")
  end

  def test_a_late_exception_for_a_client_that_has_left
    leave("/later-raise?one")
    get("/go")
    wait_for_notes("one finished 0 RuntimeError")
  end

  def test_a_client_that_leaves_in_a_stream
    leave("/stream?one")
    wait_for_notes("one finished 200 NilClass")
  end

  # Node does not know these connections any more.
  def test_requests_for_an_upgrade_that_is_not_made
    NodeProcess.only_on_node(self, "its connections stay")
    upgrade = "connection: upgrade\r\nupgrade: x\r\n"
    leave("/stream?two", upgrade)
    RawClient.open(@server.url) do |client|
      client.write("GET /visit?three HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n#{upgrade}\r\n").await("data: hello")
    end
    RawClient.open(@server.url) { |client| client.write("GET /noted?one HTTP/1.1\r\nhost: a\r\n#{upgrade}\r\n").read_all }
    wait_for_notes("one closed", "one finished 200 NilClass", "two finished 200 NilClass", "three closed", "three finished 200 NilClass", "three left with 1006")
  end

  HANDSHAKE = WebsocketPeer::HANDSHAKE[/Connection.*/m] % ""

  def test_a_client_that_leaves_before_its_handshake_is_answered
    leave("/later-visit?one", HANDSHAKE)
    leave("/later-visit?two", HANDSHAKE, waiting: 2, by: :half_close)
    get("/go")
    wait_for_notes("one closed", "one finished 200 Rondo::ClientGone", "two closed", "two finished 200 Rondo::ClientGone")
  end

  # ws answers it by itself.
  def test_a_handshake_that_is_refused
    NodeProcess.only_on_node(self, "nothing is refused")
    field = "Sec-WebSocket-Extensions: permessage-deflate; x=\"\""
    answer = RawClient.open(@server.url) { |client| client.write("GET /visit?one HTTP/1.1\r\nhost: a\r\n#{field}\r\n#{HANDSHAKE}").read_all }
    assert_match(%r{\AHTTP/1.1 400 }, answer)
    wait_for_notes("one closed", "one finished 400 Rondo::ClientGone")
  end

  # A message that comes before the handshake is answered is one of the WebSocket.
  def test_an_early_message
    NodeProcess.only_on_node(self, "it is lost")
    client = RawClient.new(@server.url)
    client.write("GET /later-visit?one HTTP/1.1\r\nhost: a\r\n#{HANDSHAKE}#{WebsocketFrames.frame(WebsocketFrames::TEXT, "early")}")
    wait_until { get("/waiting") == "1" }
    client.write(WebsocketFrames.frame(WebsocketFrames::TEXT, "x" * 100_000))
    get("/go")
    client.await("\x81\x015".b).await("\x81\x06100000".b)
  ensure
    client&.close
  end

  # The client reads on only when most of the file is gone.
  def test_a_file_that_becomes_shorter
    Tempfile.create("rondo") do |file|
      File.truncate(file.path, 100_000_000)
      client = RawClient.new(@server.url, receive_buffer: 4096)
      client.write("GET /file?#{file.path} HTTP/1.1\r\nhost: a\r\n\r\n")
      wait_until { get("/waiting") == "1" }
      get("/go")
      client.await(NodeProcess::UWS ? "Content-Length: 100000000" : "content-length: 100000000")
      File.truncate(file.path, 1000)
      assert_operator client.read_all.bytesize, :<, 100_000_000
      wait_for_notes("file finished 200 NilClass")
      client.close
    end
  end
end
