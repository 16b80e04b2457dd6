# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# WebSockets over HTTP/2 for clients that speak HTTP/1.1: websocket_bridge.js as a subprocess in front of a server. All of
# its WebSockets are streams of one connection.

class WebsocketBridge
  attr_reader :url

  # @param url [String] of the server
  def initialize(url)
    out, theirs = IO.pipe
    @pid = Process.spawn("node", File.join(__dir__, "websocket_bridge.js"), url, in: File::NULL, out: theirs)
    theirs.close
    @url = "http://127.0.0.1:#{out.gets.to_i}"
    out.close
  end

  def stop
    Process.kill("TERM", @pid)
    Process.wait(@pid)
  end
end
