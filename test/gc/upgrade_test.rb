# frozen_string_literal: true

# Upgraded connections through a server of this process while everything that can be collected or
# moved is; see server_test.rb beside it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "support/websocket_peer"

class CollectedUpgradeTest < Minitest::Test
  # Says what it finds in the env of its request.
  class Finder
    def on_open(client)
      client.subscribe("news") { |channel, message| client.write("#{channel}: #{message}") }
    end

    def on_message(client, data)
      client.write("#{client.env[data]} #{client.env.equal?(client.env)}")
    end

    def on_close(client)
      client.env.inspect
    end
  end

  # Nothing is called here, but it lives as long as its connection.
  Silent = Class.new

  # A handler that is never called has no client; it is kept all the same.
  def test_a_client_the_env_of_its_request_and_a_handler_without_one
    known = ObjectSpace::WeakMap.new
    app = lambda do |env|
      handler = env["PATH_INFO"] == "/silent" ? Silent.new : Finder.new
      known[handler] = true
      upgrade(env, handler)
    end
    serve(app) do |url|
      silent = WebsocketPeer.new(url, "silent")
      finder = WebsocketPeer.new(url, "path")
      assert_equal "own /path true", finder.ask("app.own")
      Rondo.publish("news", "today")
      assert_equal "news: today", finder.hear
      GC.start
      assert_equal 2, known.size
      [silent, finder].each(&:close)
    end
  end

  private

  def upgrade(env, handler)
    env["app.own"] = "own #{env["PATH_INFO"]}"
    env["rack.upgrade"] = handler
    [0, {}, []]
  end

  def serve(app)
    server = Rondo::Server.new(app, environment: "test", ping_interval_ms: 0)
    url = server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    yield url
  ensure
    server&.stop(force: true)
    thread&.join(60)
  end
end
