# frozen_string_literal: true

# Limits of the Node engine that all connections share: how many there are, and what upgraded ones hold together
# (engine/connections.js, engine/messages.js, engine/bus.js).
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/certificates"
require "support/node_process"
require "support/raw_client"
require "support/waiting"
require "support/websocket_peer"

class NodeSharedLimitsTest < Minitest::Test
  include Waiting

  F = WebsocketFrames
  APP = File.expand_path("waiting.ru", __dir__)
  GET = "GET /size HTTP/1.1\r\nhost: a\r\n\r\n"

  def setup
    @open = []
  end

  def teardown
    @open.each(&:close)
    @server&.stop
  end

  def start(*settings, args: [])
    @server = NodeProcess.new(APP, args: [*args, *settings.flat_map { |setting| ["--set", setting] }])
  end

  def client
    RawClient.new(@server.url).tap { |opened| @open << opened }
  end

  def peer
    WebsocketPeer.new(@server.url, "visit?one").tap { |opened| @open << opened && opened.hear }
  end

  def answered?(client)
    client.request(GET).status == 200
  rescue EOFError, SystemCallError
    false
  end

  # After ten messages.
  def ended?(peer, text)
    10.times { peer.say(text) }
    peer.hear_close.nil?
  rescue SystemCallError
    true
  end

  def open?(client)
    !client.closed?(timeout: 0.01)
  rescue RawClient::Timeout
    true
  rescue SystemCallError
    false
  end

  # One that has said nothing goes first.
  def test_unused_connections_make_room
    NodeProcess.only_on_node(self, "max_connections is refused")
    start("max_connections=4")
    idle = Array.new(2) { client }.each { |one| assert answered?(one) }
    silent = client
    busy = client.write("GET /parts?busy HTTP/1.1\r\nhost: a\r\n\r\n")
    wait_until { answered?(idle.first) && idle.first.request(GET.sub("size", "waiting")).body == "1" }
    wait_until { idle.all? { |one| answered?(one) } && answered?(client) } # so the silent one has been silent for longest
    refute open?(silent)
    wait_until { answered?(client) }
    wait_until { idle.count { |one| open?(one) } < 2 }
    go = nil
    wait_until { (go = client).then { |one| answered?(one) } }
    go.request(GET.sub("size", "go"))
    assert_equal "busy", busy.response.body
  end

  def test_connections_in_use_stay
    NodeProcess.only_on_node(self, "max_connections is refused")
    start("max_connections=4")
    peers = [peer, peer]
    requests = Array.new(2) { |number| client.write("GET /parts?#{number} HTTP/1.1\r\nhost: a\r\n\r\n") }
    peers.each { |one| assert_equal "3", one.ask("abc") }
    3.times { refute answered?(client) }
    @server.wait_for_log(/connections were closed: 4 are open and in use \(max_connections\)/)
    peers[0].close
    go = nil
    wait_until { (go = client).then { |one| answered?(one) } }
    go.request(GET.sub("size", "go"))
    assert_equal(%w[0 1], requests.map { |one| one.response.body })
    assert_equal "3", peers[1].ask("abc")
  end

  def test_connections_with_tls
    NodeProcess.only_on_node(self, "max_connections is refused")
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("server")
      start("max_connections=2", args: ["-s", "-c", pair.certificate, "-k", pair.key])
      secure = Array.new(2) { secure_client.tap { |socket| assert_match(/200 OK/, ask(socket)) } }
      wait_until { ask(secure_client).include?("200 OK") }
      assert_equal(1, secure.count { |socket| ask(socket).include?("200 OK") })
    end
  end

  def test_messages_that_wait
    start("total_message_bytes=1m")
    2.times do
      assert ended?(peer.say("wait"), "x" * 200_000)
    end
    fitting = peer.say("wait").say("x" * 200_000)
    assert_equal F::PONG, fitting.send_bytes(F.frame(F::PING, "")).next_frame.opcode
    assert_equal "5", peer.ask("small")
    RawClient.open(@server.url) { |one| one.request(GET.sub("size", "go")) }
    assert_equal "200000", fitting.hear
    20.times { assert_equal "200000", fitting.ask("x" * 200_000) }
  end

  def test_messages_that_have_not_come_completely
    NodeProcess.only_on_node(self, "it does not tell what it has")
    start("total_message_bytes=1m")
    whole = peer
    Array.new(12) { peer.send_bytes(F.frame(F::TEXT, "x" * 200_000).byteslice(0, 150_000)) }
    @server.wait_for_log(/[1-9]\d* connections were closed: their messages are too large together \(total_message_bytes\)/)
    assert_equal "200000", whole.ask("x" * 200_000)
  end

  def test_subscriptions_of_all_clients
    start("total_subscription_bytes=1k")
    first = peer
    second = peer
    name = "n" * 300
    assert_equal %w[true nil true], [first.ask("subscribe #{name}"), second.ask("subscribe #{name}"), first.ask("subscribe #{name}")]
    assert_equal %w[true true true nil], [first.ask("unsubscribe #{name}"), second.ask("subscribe #{name}"), first.ask("subscribe a"), first.ask("subscribe #{name}")]
    second.close
    wait_until { first.ask("subscribe #{name}") == "true" }
  end

  private

  def secure_client
    context = OpenSSL::SSL::SSLContext.new.tap { |made| made.verify_mode = OpenSSL::SSL::VERIFY_NONE }
    OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", @server.own_port), context).tap do |socket|
      socket.sync_close = true
      @open << socket
      socket.connect
    end
  rescue OpenSSL::SSL::SSLError, SystemCallError
    nil
  end

  def ask(socket)
    return "" unless socket

    socket.write(GET)
    socket.readpartial(4096)
  rescue OpenSSL::SSL::SSLError, SystemCallError, IOError
    ""
  end
end
