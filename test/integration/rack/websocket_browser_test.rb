# frozen_string_literal: true

# A real browser's WebSocket: the messages that a page sends and gets, and the end that it sees.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "support/browser"
require "support/server_process"

class WebsocketBrowserTest < Minitest::Test
  APP = File.expand_path("websocket_clients.ru", __dir__)
  # Records all events of the page's WebSocket, as text.
  PAGE = <<~SCRIPT
    globalThis.seen = [];
    globalThis.connect = (path, protocols) => new Promise((open) => {
      globalThis.socket = new WebSocket(location.origin.replace("http", "ws") + path, protocols || []);
      socket.binaryType = "arraybuffer";
      socket.onopen = () => { seen.push("open " + socket.protocol); open(true); };
      socket.onerror = () => seen.push("error");
      socket.onclose = (event) => { seen.push(`close ${event.code} ${event.reason} ${event.wasClean}`); open(false); };
      socket.onmessage = ({ data }) => seen.push(
        typeof data === "string" ? "text " + data : "binary " + Array.from(new Uint8Array(data)).join(","));
    });
  SCRIPT

  def self.server
    @server ||= ServerProcess.new(APP).tap { |server| Minitest.after_run { server.stop } }
  end

  def setup
    skip "chromium is not installed" unless Chromium.find
    @pages = []
  end

  def teardown
    @pages&.each(&:close)
  end

  def open_page(server = self.class.server)
    page = Chromium.shared.open(server.url)
    @pages << page
    page.run("#{PAGE}; 0")
    page
  end

  def seen(page, count)
    page.wait_for("seen.length >= #{count}")
    page.run("seen.splice(0)")
  end

  def test_a_page_talks
    page = open_page
    assert page.run("connect('/', ['xml', 'chat'])")
    page.run("socket.send('h\\u00e4llo \\u{1f600}'); socket.send(new Uint8Array([0, 255, 128])); socket.send(''); 0")
    assert_equal ["open chat", "text hällo 😀", "binary 0,255,128", "text "], seen(page, 4)
    page.run("socket.onmessage = ({ data }) => seen.push(data === globalThis.large ? 'same' : 'other')
              globalThis.large = 'x\\u20ac'.repeat(50000); socket.send(large); 0")
    assert_equal ["same"], seen(page, 1)
    page.run("socket.close(4001, 'g\\u00fcnstig'); 0")
    assert_equal ["close 4001 günstig true"], seen(page, 1)
    assert_empty page.errors
  end

  def test_how_the_server_ends
    page = open_page
    { "'close 3000 enough'" => "close 3000 enough true", "'raise'" => "close 1011  true",
      "'x'.repeat(300000)" => "close 1009 message is too large true" }.each do |message, told|
      assert page.run("connect('/')")
      page.run("socket.send(#{message}); 0")
      assert_equal ["open ", told], seen(page, 2)
    end
  end

  def test_a_server_that_stops
    ServerProcess.run(APP) do |server|
      page = open_page(server)
      assert page.run("connect('/')")
      server.signal("TERM")
      assert_equal ["open ", "text last words", "close 1001 going away true"], seen(page, 3)
    end
  end

  def test_a_handshake_that_is_refused
    page = open_page
    refute page.run("connect('/refused')")
    assert_equal ["error", "close 1006  false"], seen(page, 2)
    refute page.run("connect('/unasked', ['chat'])")
    assert_equal ["error", "close 1006  false"], seen(page, 2), "a sub-protocol that nobody offered"
  end

  def test_two_pages_and_a_picture
    page = open_page
    other = open_page
    [page, other].each { |one| assert one.run("connect('/')") }
    page.run("socket.send('one'); 0")
    other.run("socket.send('other'); 0")
    assert_equal ["open ", "text one"], seen(page, 2)
    assert_equal ["open ", "text other"], seen(other, 2)
    file = File.join(self.class.server.directory, "page.png")
    page.screenshot(file)
    assert_equal "\x89PNG".b, File.binread(file, 4)
    assert_equal "no WebSocket", page.go("#{self.class.server.url}/again").run("document.body.innerText")
    assert_raises(Chromium::Failure) { page.run("nothing.at.all") }
    assert_raises(Chromium::Failure) { page.go("http://127.0.0.1:1/") }
  end
end
