# frozen_string_literal: true

# The browser's tests of https once more over HTTP/2, and the chat of the examples: page, files, uploads, events and WebSockets
# share one connection.
# SPDX-License-Identifier: MIT

require "json"
require_relative "../tls/browser_behaviour"

class HTTP2BrowserTest < TLSCase
  include BrowserBehaviour

  CHAT = File.join(ROOT, "examples/chat/config.ru")
  LINES = "[...document.querySelectorAll('#log li')].map(line => line.querySelector('b').textContent + ': ' + " \
          "line.lastChild.textContent)"

  def secure(*words, more: "")
    write "http2.rb", "http2 true\nstate_path 'state'\nactivate_control_app 'unix://control.sock'\n#{more}"
    super("-C", "http2.rb", *words)
  end

  # @return [Integer] connections since the server began
  def accepted
    JSON.parse(rondo("ctl", "stats", "-S", "state").out.lines.last).fetch("rondo").fetch("accepted")
  end

  # All of it on one connection. A browser may begin a second one while the first one's handshake is slow.
  def test_events_and_a_websocket
    before = accepted
    assert_equal "1000000", text_of("/size", "{ method: 'POST', body: new Uint8Array(1000000) }")
    check_a_file
    super
    protocols = @page.run("performance.getEntries().map(it => it.nextHopProtocol).filter(it => it)")
    assert_equal ["h2"], protocols.uniq
    assert_equal before, accepted
  end

  # Browsers that may not open a WebSocket on a stream open a connection for it.
  def test_a_websocket_without_the_setting
    @server.stop
    @server = secure(more: "http2_websocket false\n")
    @page.go("https://localhost:#{@server.port}/")
    before = accepted
    check_websocket
    assert_equal before + 1, accepted
  end

  def enter(server, nick, query, how)
    page = Chromium.shared.open("https://localhost:#{server.port}/#{query}")
    page.wait_for("document.getElementById('state').textContent == '#{how}'")
    page.run("document.getElementById('nick').value = '#{nick}'")
    page
  end

  def say(page, text)
    page.run("document.getElementById('text').value = '#{text}'; document.querySelector('form').requestSubmit()")
  end

  def test_the_chat
    @server.stop
    server = secure(CHAT)
    pages = [enter(server, "Ada", "", "WebSocket"), enter(server, "Bob", "", "WebSocket"), enter(server, "Eve", "?sse", "event stream")]
    say(pages[0], "from a socket")
    pages.each { |page| page.wait_for("#{LINES}.length >= 1") }
    say(pages[2], "by a form")
    pages.each do |page|
      page.wait_for("#{LINES}.length >= 2")
      assert_equal ["Ada: from a socket", "Eve: by a form"], page.run(LINES)
    end
    assert_operator accepted, :<=, 2
  ensure
    pages&.each(&:close)
  end
end
