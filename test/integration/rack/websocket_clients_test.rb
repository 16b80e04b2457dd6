# frozen_string_literal: true

# WebSocket clients that people use, each in the same conversation: node's ws, Python's websockets;
# directly and through nginx and haproxy.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "open3"
require "support/proxy_process"
require "support/server_process"

class WebsocketClientsTest < Minitest::Test
  APP = File.expand_path("websocket_clients.ru", __dir__)
  SEEN = {
    "protocol" => "chat", "echo" => ["hällo", "00ff80", "", "large"], "fragments" => "one two three",
    "pong" => "are you there", "closed" => [4001, "bye"], "closes" => [3000, "enough"], "raises" => [1011, ""],
    "limit" => [1009, "message is too large"], "refused" => 403
  }.freeze
  # Where Debian puts its packages for node.
  NODE = { "NODE_PATH" => "/usr/share/nodejs" }.freeze

  def self.server
    @server ||= ServerProcess.new(APP).tap { |server| Minitest.after_run { server.stop } }
  end

  def server
    self.class.server
  end

  # @return [Boolean] whether the program runs the code
  def can?(*command, env: {})
    _, status = Open3.capture2e(env, *command)
    status.success?
  rescue Errno::ENOENT
    false
  end

  def seen_by(*command, url, env: {})
    output, said, status = Open3.capture3(env, "timeout", "60", *command, url)
    assert_predicate status, :success?, "#{output[-2000..] || output}\n#{said}\n#{server.log[-2000..]}"
    JSON.parse(output)
  end

  def node(url)
    skip "node-ws is not installed" unless can?("node", "-e", "require('ws')", env: NODE)
    seen_by("node", File.expand_path("websocket_clients.js", __dir__), url, env: NODE)
  end

  def python(url)
    skip "python3-websockets is not installed" unless can?("/usr/bin/python3", "-c", "import websockets")
    seen_by("/usr/bin/python3", File.expand_path("websocket_clients.py", __dir__), url)
  end

  %i[node python].each do |client|
    define_method("test_#{client}") { assert_equal SEEN, send(client, server.url) }

    %w[nginx haproxy].each do |name|
      define_method("test_#{client}_through_#{name}") do
        skip "#{name} is not installed" unless ProxyProcess.find(name)
        proxy = ProxyProcess.new(name, server.port, patience: "30s")
        assert_equal SEEN, send(client, proxy.url)
      ensure
        proxy&.stop
      end
    end
  end
end
