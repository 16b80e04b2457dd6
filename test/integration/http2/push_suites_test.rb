# frozen_string_literal: true

# The tests of rack.upgrade and of channels once more with WebSockets that are streams of one HTTP/2 connection: callbacks,
# the end of the server, phased restarts, slow readers.
# SPDX-License-Identifier: MIT

require_relative "../rack/pubsub_deflate_test"
require_relative "../rack/pubsub_test"
require_relative "../rack/upgrade_test"
require "support/websocket_bridge"

# What a test that opens its WebSockets by `WebsocketPeer` includes.
module PushOnStreams
  def setup
    skip "not on a plain port" if XorProxy.on?
    @bridges = {}
    super
  end

  def teardown
    super
    @bridges&.each_value(&:stop)
  end

  # @return [WebsocketBridge] in front of this server
  def bridge(url)
    @bridges[url] ||= WebsocketBridge.new(url)
  end
end

class HTTP2UpgradeTest < UpgradeTest
  include PushOnStreams

  # These are about requests of HTTP/1.1.
  %i[test_a_client_that_leaves_before_it_is_upgraded_takes_nothing_from_the_next test_what_is_not_upgraded
     test_a_version_that_is_not_spoken].each { |name| undef_method(name) }

  def with_app(app = APP, settings: {}, **options, &block)
    super(app, settings: settings.merge(http2: true), **options, &block)
  end

  def peer(server, path = "", fields = "")
    WebsocketPeer.new(bridge(server.url).url, path, fields).tap { |peer| @peers << peer }
  end
end

# Channels.
module ChannelsOnStreams
  include PushOnStreams

  # What the tests know of the server: where its clients go.
  Front = Struct.new(:running, :url) do
    def stop = running.stop
    def log = running.log
    def server = running.server
  end

  def start(app = nil, **settings, &block)
    running = super(app, **settings, http2: true, &block)
    @running[-1] = Front.new(running, bridge(running.url).url)
  end
end

class HTTP2PubsubTest < PubsubTest
  include ChannelsOnStreams
end

class HTTP2PubsubDeflateTest < PubsubDeflateTest
  include ChannelsOnStreams
end
