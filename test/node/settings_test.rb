# frozen_string_literal: true

# The option `--set` of the Node engine: a limit holds as it was set, and what cannot be set is one line.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "support/node_process"
require "support/raw_client"
require "support/websocket_peer"

class NodeSettingsTest < Minitest::Test
  APP = File.expand_path("answers.ru", __dir__)
  DOCUMENT = File.join(NodeProcess::ROOT, "docs/NODE.md")

  def teardown
    @server&.stop
  end

  def start(*settings, args: [])
    @server = NodeProcess.new(APP, args: [*args, *settings.flat_map { |setting| ["--set", setting] }])
  end

  def post(size)
    body = "x" * size
    RawClient.open(@server.url) { |client| client.request("POST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: #{size}\r\n\r\n#{body}") }
  end

  def test_limits_hold_as_they_are_set
    start("max_body_bytes=2k", "max_target_bytes=300", "max_message_bytes=1000")
    assert_equal [200, 413], [2048, 2049].map { |size| post(size).status }
    long = RawClient.open(@server.url) { |client| client.request("GET /#{"x" * 300} HTTP/1.1\r\nhost: a\r\n\r\n") }
    assert_equal 414, long.status
    peer = WebsocketPeer.new(@server.url, "talk")
    assert_equal ["hello", "x" * 1000], [peer.hear, peer.ask("x" * 1000)]
    return if NodeProcess::UWS # it resets the connection

    assert_equal 1009, peer.say("x" * 1001).hear_close.first
  ensure
    peer&.close
  end

  def test_limits_hold_in_workers
    start("max_body_bytes=1k", args: ["-w", "1"])
    assert_equal [200, 413], [1024, 1025].map { |size| post(size).status }
  end

  def test_the_last_one_counts_and_zero_is_no_limit
    start("max_body_bytes=5", "max_body_bytes=0")
    assert_equal 200, post(6).status
  end

  def test_what_cannot_be_set
    { "no_such_limit=1" => "there is no setting \"no_such_limit\"",
      "max_body_bytes" => "max_body_bytes must be from 0 to 1024g, not \"\"",
      "max_body_bytes=x" => "max_body_bytes must be from 0 to 1024g, not \"x\"",
      "max_target_bytes=2m" => "max_target_bytes must be from 256 to 1m, not \"2m\"",
      "backlog=-1" => "backlog must be from 1 to 65535, not \"-1\"" }.each do |setting, line|
      output, status = Open3.capture2e({ "RONDO_NODE_CACHE" => NodeProcess::CACHE }, *NodeProcess::COMMAND, "--set", setting, APP)
      assert_equal [["rondo: --set: #{line}\n"], 2], [output.lines.grep_v(/\A\* /), status.exitstatus]
    end
  end

  def test_the_document_has_all_names
    engine = File.join(NodeProcess::ROOT, "node/lib/rondo/node/engine")
    names, = Open3.capture2("node", "-p", "require('#{engine}/settings.js').names.join('\\n')")
    section = File.read(DOCUMENT)[/^## Settings\n.*?(?=^## )/m]
    assert_equal names.split.sort, section.scan(/^\| `(\w+)`/).flatten.sort
  end
end
