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

  def test_a_client_and_the_env_of_its_request
    serve(->(env) { upgrade(env, Finder.new) }) do |url|
      peer = WebsocketPeer.new(url, "path")
      assert_equal "/path true", peer.ask("PATH_INFO")
      assert_equal "own /path true", peer.ask("app.own")
      Rondo.publish("news", "today")
      assert_equal "news: today", peer.hear
      peer.close
    end
  end

  def test_a_handler_that_is_never_called_lives_as_long_as_its_connection
    known = ObjectSpace::WeakMap.new
    app = ->(env) { upgrade(env, Silent.new.tap { |silent| known[silent] = true }) }
    serve(app) do |url|
      peer = WebsocketPeer.new(url)
      peer.send_bytes(WebsocketFrames.frame(WebsocketFrames::PING, "p"))
      assert_equal "p", peer.next_frame.payload
      GC.start
      assert_equal 1, known.size
      peer.close
    end
  end

  private

  def upgrade(env, handler)
    env["app.own"] = "own #{env["PATH_INFO"]}"
    env["rack.upgrade"] = handler
    [0, {}, []]
  end

  def serve(app)
    server = Rondo::Server.new(app, environment: "test")
    url = server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    yield url
  ensure
    server&.stop(force: true)
    thread&.join(60)
  end
end
