# frozen_string_literal: true

# Conversations by WebSocket: both engines send the same frames, byte for byte, from the handshake to the Close.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/plain_answer"
require "support/websocket_peer"
require "zlib"

class SameConversationsTest < Minitest::Test
  APP = File.expand_path("answers.ru", __dir__)
  F = WebsocketFrames
  # What the client says, one after the other. After each of them it hears as many frames as the number says.
  ROWS = {
    "echo" => [["hello", 1], ["", 1], ["grün 🐈", 1]],
    "large" => [["x" * 200_000, 1]],
    "binary" => [[F.frame(F::BINARY, "\x00\xFFab".b), 1]],
    "fragments" => [[F.frame(F::TEXT, "one ", fin: false) + F.frame(F::CONTINUATION, "two"), 1]],
    "ping" => [[F.frame(F::PING, "are you there"), 1]],
    "json" => [["json", 1]], "bytes" => [["bytes", 1]], "state" => [["state", 1]], "event" => [["event", 1]],
    "publish" => [["say to all", 1], ["leave", 1], ["say to nobody", 0], ["last", 1]],
    "patterns" => [["pattern a.[x-z]?", 0], ["to a.y1 one", 1], ["to a.q1 two", 0], ["pattern *", 0], ["to a.z2 three", 2], ["last", 1]],
    "drained" => [["drain", 2]], "since" => [["since kept", 3]], "env" => [["env", 1]], "mistakes" => [["mistakes", 1]],
    "another handler" => [["next", 1], ["hello", 1]],
    "close by the server" => [["close bye", 1]],
    "close by the client" => [[F.frame(F::CLOSE, [4000].pack("n") + "reason"), 1]],
    "close without a code" => [[F.frame(F::CLOSE, ""), 1]],
    "a callback that raises" => [["raise", 1]],
    "too large" => [[F.frame(F::TEXT, "x" * 300_000), 1]],
    "text that is not UTF-8" => [[F.frame(F::TEXT, "\xFF\xFE".b), 1]],
    "a reserved bit" => [["\xF1\x80abcd".b, 1]],
    "a frame without a mask" => [["\x81\x02hi".b, 1]],
    "an unknown opcode" => [["\x83\x80abcd".b, 1]],
    "a long ping" => [["\x89\xFE\x00\x7Eabcd".b + ("x" * 126), 1]],
    "a continuation of nothing" => [["\x80\x80abcd".b, 1]]
  }.freeze
  # What ws refuses, it refuses with the code alone.
  REFUSED = ["too large", "text that is not UTF-8", "a reserved bit", "a frame without a mask", "an unknown opcode",
             "a long ping", "a continuation of nothing"].freeze
  # uWebSockets.js ends the connection without a Close. It resets it for what is too large, and takes a frame without a
  # mask for one that has not come completely.
  UWS_UNLIKE = ["too large", "a frame without a mask"].freeze
  HANDSHAKES = {
    "protocols" => "Sec-WebSocket-Protocol: a, b\r\n", "protocols that are not valid" => "Sec-WebSocket-Protocol: a,,b\r\n", "an extension of nobody" => "Sec-WebSocket-Extensions: x\r\n",
    "plain" => ""
  }.freeze

  def self.servers
    @servers ||= begin
      started = [ServerProcess.new(APP), NodeProcess.new(APP)]
      Minitest.after_run { started.each(&:stop) }
      started
    end
  end

  (ROWS.keys - (NodeProcess::UWS ? UWS_UNLIKE : [])).each do |name|
    define_method("test_#{name.tr(" ", "_").gsub("-", "_")}") do
      mri, node = self.class.servers.map { |server| converse(server, ROWS[name]) }
      mri = refused(mri) if REFUSED.include?(name)
      assert_equal mri, node
    end
  end

  HANDSHAKES.each do |name, fields|
    define_method("test_handshake_#{name.tr(" ", "_")}") do
      peers = self.class.servers.map { |server| WebsocketPeer.new(server.url, "talk", fields) }
      assert_equal(*peers.map { |peer| NodeProcess::UWS ? PlainAnswer.of(peer.head) : peer.head })
    ensure
      peers&.each(&:close)
    end
  end

  def test_a_request_that_only_looks_like_a_handshake
    bytes = "GET /parts HTTP/1.1\r\nhost: a\r\nconnection: Upgrade, close\r\nupgrade: websocket\r\nsec-websocket-version: 12\r\n\r\n"
    mri, node = self.class.servers.map do |server|
      RawClient.open(server.url) { |client| client.write(bytes).read_all.sub(/^date: .*\r\n/, "") }
    end
    mri, node = PlainAnswer.of(mri), PlainAnswer.of(node) if NodeProcess::UWS
    assert_equal mri, node
  end

  def test_compressed_messages
    extension = "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
    self.class.servers.each do |server|
      peer = WebsocketPeer.new(server.url, "talk", extensions: extension)
      assert_match(/permessage-deflate/, peer.head)
      assert_equal "hello", peer.hear
      frame = peer.say("y" * 5000).next_frame
      inflated = Zlib::Inflate.new(-Zlib::MAX_WBITS).inflate(frame.payload + "\x00\x00\xFF\xFF".b)
      assert_equal "y" * 5000, inflated
      peer.close
    end
  end

  private

  def refused(heard)
    return [*heard[0..-2], []] if NodeProcess::UWS

    [*heard[0..-2], [F::CLOSE, heard.last[1].byteslice(0, 2), *heard.last[2..]]]
  end

  # @return [Array<Array>] opcodes and payloads, and how the connection ended
  def converse(server, lines)
    peer = WebsocketPeer.new(server.url, "talk")
    heard = [peer.next_frame.to_a]
    lines.each do |said, count|
      said.encoding == Encoding::BINARY ? peer.send_bytes(said) : peer.say(said)
      count.times { heard << peer.next_frame.to_a }
    end
    heard
  ensure
    peer&.close
  end
end
