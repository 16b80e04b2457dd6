# frozen_string_literal: true

# The tables of WebSockets once more on streams of HTTP/2 (RFC 8441): all frames, all messages, permessage-deflate. The
# handshake is another one there; test/integration/http2 has it.
# SPDX-License-Identifier: MIT

require_relative "test_websocket"
require_relative "test_websocket_deflate"
require_relative "../support/websocket_bridge"

module OnStreams
  # What clients know of such a server.
  Front = Struct.new(:url)

  # Other transports stand between a client and the server then.
  def setup
    skip "not on a plain port" if XorProxy.on?
    super
  end

  # @return [Front] of the server
  def self.front(server)
    bridge = WebsocketBridge.new(server.url)
    Minitest.after_run { bridge.stop }
    Front.new(bridge.url)
  end
end

class TestWebsocketHTTP2 < TestWebsocket
  include OnStreams

  %i[test_the_answer_to_the_key_of_the_rfc test_what_is_no_handshake_is_a_request test_lists_and_case
     test_every_row_of_the_table_is_there].each { |name| undef_method(name) }

  def self.server(settings = { max_message_bytes: 262_144 })
    @fronts ||= {}
    @fronts[settings] ||= OnStreams.front(super(settings.merge(http2: true)))
  end
end

class TestWebsocketDeflateHTTP2 < TestWebsocketDeflate
  include OnStreams

  def self.server(**settings)
    @fronts ||= {}
    @fronts[settings] ||= OnStreams.front(super(http2: true, **settings))
  end
end
