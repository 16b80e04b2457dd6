# frozen_string_literal: true

# Clients ask for a whole long history again and again, and do not read it. Other clients lose no message.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require_relative "../../support/websocket_peer"

class ClusterReplaysTest < ClusterCase
  KEPT = 9000 # of 1,000 bytes: nine times the limit of a worker's queue
  LIVE = 200

  PUSH = <<~'RUBY'
    Rondo::PubSub.history("kept", size: 10_000)
    module Listener
      def self.on_open(client)
        client.subscribe("live")
        client.write("pid #{Process.pid}")
      end
    end
    module Again
      def self.on_open(client) = client.subscribe("kept")
    end
    run lambda { |env|
      env["rack.upgrade"] = env["rack.upgrade?"] == :sse ? Again : Listener if env["rack.upgrade?"]
      said = case env["PATH_INFO"]
             when "/fill" then 100.times.all? { Rondo.publish("kept", "k" * 1000) }
             when "/live" then Rondo.publish("live", env["QUERY_STRING"])
             end
      [200, { "content-type" => "text/plain" }, [said.to_s]]
    }
  RUBY
  AGAIN = "GET /again HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nLast-Event-ID: 1\r\n\r\n"

  def setup
    super
    write "config.ru", PUSH
    write "config/rondo.rb", "hub_queue_bytes '1m'\n"
    @peers = []
    @crowd = []
  end

  def teardown
    @over = true
    @asking&.join
    [*@peers, *@crowd].each(&:close)
    super
  end

  def peer_in_each(server, count)
    by_pid = {}
    until by_pid.size == count
      @peers << (peer = WebsocketPeer.new(server.url))
      by_pid[peer.hear] ||= peer
    end
    by_pid.values
  end

  # One after the other. The last twenty stay and read nothing.
  def ask_again_and_again(server)
    until @over
      @crowd << TCPSocket.new("127.0.0.1", server.port).tap { |socket| socket.write(AGAIN) }
      @crowd.shift.close if @crowd.size > 20
      @asked = @asked.to_i + 1
      Thread.pass
    end
  end

  def test_live_messages_beside_replays
    skip "so many replays are too much for the XOR proxy" if XorProxy.on?
    server = cluster
    listeners = peer_in_each(server, 2)
    (KEPT / 100).times { assert_equal "true", get(server, "/fill").body }
    @asking = Thread.new { ask_again_and_again(server) }
    eventually("replays") { @asked.to_i > 50 }
    sent = (0...LIVE).map(&:to_s)
    sent.each { |number| assert_equal "true", get(server, "/live?#{number}").body }
    listeners.each { |listener| assert_equal sent, Array.new(LIVE) { listener.hear }.sort_by(&:to_i) }
    refute_match(/loses messages/, server.log)
  end
end
