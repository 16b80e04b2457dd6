# frozen_string_literal: true

# A published message is sent deflated to clients that accept it so, and plain to the others.
# SPDX-License-Identifier: MIT

require "zlib"
require_relative "rack_case"
require_relative "../../support/websocket_peer"

class PubsubDeflateTest < RackCase
  module Handler
    def self.on_open(client)
      client.subscribe("news")
      client.write("open")
    end

    def self.on_message(client, data)
      client.publish("news", data)
    end
  end

  UPGRADE = lambda do |env|
    env["rack.upgrade"] = Handler
    [200, {}, []]
  end
  OFFERS = [nil, "permessage-deflate", "permessage-deflate; server_max_window_bits=9"].freeze

  def setup
    super
    start(UPGRADE, lint: false, deflate_threshold_bytes: 100)
    @peers = OFFERS.map { |offer| WebsocketPeer.new(@running.last.url, extensions: offer) }
    @clients.concat(@peers)
    @peers.each { |peer| assert_equal "open", peer.hear }
  end

  # @return [Array<Boolean>] which of the three got it deflated
  def publish(text)
    @peers.first.say(text)
    @peers.map do |peer|
      frame = peer.next_frame
      payload = frame.rsv == 4 ? Zlib::Inflate.new(-15).inflate(frame.payload + "\x00\x00\xff\xff".b) : frame.payload
      assert_equal text, payload
      frame.rsv == 4
    end
  end

  def test_each_in_the_form_it_takes
    assert_equal [false, true, true], publish("a" * 500)
    assert_equal [false, true, false], publish("a" * 600) # more than a window of 9 bits
    assert_equal [false, false, false], publish("a" * 99)
  end
end
