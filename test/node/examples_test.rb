# frozen_string_literal: true

# Applications that run unchanged on both engines: those of examples/, one that shows its env, one of Roda.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "support/browser"
require "support/node_process"
require "support/plain_answer"
require "support/raw_client"
require "support/websocket_peer"

class NodeExamplesTest < Minitest::Test
  EXAMPLES = File.join(NodeProcess::ROOT, "examples")
  RODA = [
    "GET / HTTP/1.1\r\n", "GET /json HTTP/1.1\r\n", "GET /to HTTP/1.1\r\n", "GET /hello/you?q=%C3%BC+x HTTP/1.1\r\n",
    "GET /hello/you/3 HTTP/1.1\r\n", "GET /hello/you/x HTTP/1.1\r\n", "GET /none HTTP/1.1\r\n", "DELETE /gone HTTP/1.1\r\n"
  ].freeze

  SHOWN = "[...document.querySelectorAll('#log li')].map(line => line.querySelector('b').textContent + ': ' + " \
          "line.lastChild.textContent)"

  def setup
    @servers = []
    @pages = []
  end

  def teardown
    @pages.each(&:close)
    @servers.each(&:stop)
  end

  def node(name, *args)
    NodeProcess.new(File.expand_path(name, EXAMPLES), args: args).tap { |server| @servers << server }
  end

  def both(name)
    path = File.expand_path(name, EXAMPLES)
    [ServerProcess.new(path), NodeProcess.new(path)].each { |server| @servers << server }
  end

  # @return [String] all bytes of the answer, without what differs from second to second
  def answer(server, head, body = "")
    RawClient.open(server.url) do |client|
      bytes = client.write("#{head}host: a\r\nconnection: close\r\n\r\n#{body}").read_all
      NodeProcess::UWS ? PlainAnswer.of(bytes).flatten.join("\n") : bytes.sub(/^date: .*$/, "date: now")
    end
  end

  def same(servers, head, body = "")
    mri, node = servers.map { |server| answer(server, head, body) }
    assert_equal mri, node, head
  end

  def test_hello
    servers = both("hello.ru")
    same(servers, "GET / HTTP/1.1\r\n")
    same(servers, "HEAD / HTTP/1.1\r\n")
  end

  def test_streaming
    servers = both("streaming.ru")
    %w[each stream none].each { |path| same(servers, "GET /#{path} HTTP/1.1\r\n") }
  end

  def test_echo
    both("echo.ru").each do |server|
      peer = WebsocketPeer.new(server.url)
      assert_equal "grün".b, peer.ask("grün").b
      peer.close
    end
  end

  def test_counter
    servers = both("counter.ru")
    same(servers, "GET / HTTP/1.1\r\n")
    streams = servers.map { |server| open_stream(server, "/counts") }
    streams.each { |stream| stream.await("data: 0\n\n") }
    servers.each { |server| answer(server, "POST /press HTTP/1.1\r\n") }
    streams.each { |stream| stream.await("data: 1\n\n") }
    return assert_includes(streams.last.buffer, "text/event-stream") if NodeProcess::UWS # chunks of events

    assert_equal(*streams.map { |stream| stream.buffer.sub(/^date: .*$/, "") })
  ensure
    streams&.each(&:close)
  end

  UPLOAD = <<~TEXT.gsub("\n", "\r\n").b.sub("BYTES", "\x00\xFFa\r\n--b".b).freeze
    --b0undary
    Content-Disposition: form-data; name="text"

    grün, 猫
    --b0undary
    Content-Disposition: form-data; name="deep[a][]"

    1
    --b0undary
    Content-Disposition: form-data; name="file"; filename="C:\\folder\\a \\"b\\".bin"
    Content-Type: application/octet-stream

    BYTES
    --b0undary--
  TEXT

  def test_an_upload
    servers = both("../test/node/roda.ru")
    type = "content-type: multipart/form-data; boundary=b0undary\r\n"
    same(servers, "POST /upload HTTP/1.1\r\n#{type}content-length: #{UPLOAD.bytesize}\r\n", UPLOAD)
    assert_includes answer(servers.last, "POST /upload HTTP/1.1\r\n#{type}content-length: #{UPLOAD.bytesize}\r\n", UPLOAD), "200 OK"
  end

  def test_pages_as_up_has_them
    servers = both("../test/node/up/rack/config.ru")
    %w[/ /second /third].each { |path| same(servers, "GET #{path} HTTP/1.1\r\n") }
  end

  def test_roda_as_up_has_it
    servers = both("../test/node/up/roda/config.ru")
    ["GET /", "GET /greet", "GET /greet/all", "POST /greet", "GET /nothing"].each { |line| same(servers, "#{line} HTTP/1.1\r\n") }
    servers.each { |server| server.wait_for_log(/^somebody says Hello$/) }
  end

  def test_websockets_as_up_has_them
    servers = both("../test/node/up/websocket/config.ru")
    same(servers, "GET / HTTP/1.1\r\n")
    servers.each do |server|
      peers = []
      2.times do
        peers << WebsocketPeer.new(server.url)
        assert_equal "one", peers.last.ask("one") # it has subscribed before
        peers.each { |peer| assert_match(/\Aall: one by \d+\z/, peer.hear) }
      end
      peers.each(&:close)
      server.wait_for_log(/^closed \d+$/)
      last = WebsocketPeer.new(server.url)
      server.stop
      assert_equal "The server ends.", last.hear
      last.close
    end
  end

  def test_the_chat_in_four_workers
    server = node("chat/config.ru", "-w", "4")
    assert_includes answer(server, "GET / HTTP/1.1\r\n"), "<!doctype html>"
    peers = Array.new(5) { WebsocketPeer.new(server.url, "?room=tea") }
    stream = open_stream(server, "/?room=tea")
    peers.first.say(JSON.generate(nick: "Ada", text: "hello, ü"))
    peers.each { |peer| assert_equal ["Ada", "hello, ü"], JSON.parse(peer.hear).values_at("nick", "text") }
    answer(server, "POST /?room=tea HTTP/1.1\r\ncontent-length: 29\r\n", "{\"nick\":\"Bob\",\"text\":\"second\"}"[0, 29])
    answer(server, "POST /?room=tea HTTP/1.1\r\ncontent-length: 30\r\n", "{\"nick\":\"Bob\",\"text\":\"second\"}")
    peers.each { |peer| assert_equal "second", JSON.parse(peer.hear)["text"] }
    stream.await("second")
    late = WebsocketPeer.new(server.url, "?room=tea")
    assert_equal ["hello, ü", "second"], Array.new(2) { JSON.parse(late.hear)["text"] }
    assert_equal [1008, "that is no message"], peers.last.say("nonsense").hear_close
  ensure
    [*peers, stream, late].compact.each(&:close)
  end

  def test_the_chat_in_a_browser
    skip "chromium is not installed" unless Chromium.find

    server = node("chat/config.ru", "-w", "2")
    ada, bob = %w[Ada Bob].map { |nick| enter(server, nick) }
    say(ada, "Is anybody here?")
    say(bob, "Me. <b>Hello</b> ☕") if sees(bob, "Ada: Is anybody here?")
    lines = ["Ada: Is anybody here?", "Bob: Me. <b>Hello</b> ☕"]
    [ada, bob, enter(server, "Late", "?sse")].each { |page| assert sees(page, *lines) }
  end

  def test_roda
    servers = both("../test/node/roda.ru")
    RODA.each { |head| same(servers, head) }
    form = "name=%C3%A4+b&list[]=1&list[]=2"
    same(servers, "POST /form HTTP/1.1\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: #{form.bytesize}\r\n", form)
    servers.each { |server| WebsocketPeer.new(server.url, "live").tap { |peer| assert_equal "hi", peer.ask("hi") }.close }
  end

  private

  def enter(server, nick, query = "")
    page = Chromium.shared.open("#{server.url}/#{query}").tap { |opened| @pages << opened }
    page.wait_for("document.getElementById('state').textContent == '#{query.empty? ? "WebSocket" : "event stream"}'")
    page.run("document.getElementById('nick').value = #{nick.to_json}")
    page
  end

  def say(page, text)
    page.run("document.getElementById('text').value = #{text.to_json}; document.querySelector('form').requestSubmit()")
  end

  def sees(page, *lines)
    page.wait_for("#{SHOWN}.length >= #{lines.size}")
    lines == page.run(SHOWN)
  end

  def open_stream(server, path)
    RawClient.new(server.url).write("GET #{path} HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n").await("\r\n\r\n")
  end
end
