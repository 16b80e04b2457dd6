# frozen_string_literal: true

# rack.upgrade when it is impossible or forbidden: pages of other sites, requests that are not a handshake, protocols
# that were not offered. Servers of this process, real sockets.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "support/websocket_peer"
require "support/xor_proxy"

class UpgradeRefusedTest < Minitest::Test
  # Reports that it was opened.
  class Greeter
    def on_open(client)
      client.write("welcome")
    end
  end

  # Records the log of the server.
  class Log
    attr_reader :lines

    def initialize
      @lines = []
    end

    %i[debug info warn error].each { |level| define_method(level) { |line| @lines << "#{level}: #{line}" } }
  end

  # Records whether it was closed.
  class Body < Array
    attr_reader :closed

    def close
      @closed = true
    end
  end

  def setup
    @log = Log.new
    @body = Body.new(["of the application"])
    @answer = [0, {}, @body]
    @handler = Greeter.new
  end

  def teardown
    @server&.stop(force: true)
    @thread&.join(60)
  end

  def serve(**settings)
    app = lambda do |env|
      env["rack.upgrade"] = @handler
      @answer
    end
    @server = Rondo::Server.new(app, environment: "test", log: @log, **settings)
    @url = XorProxy.front(@server.listen(XorProxy.bind("tcp://127.0.0.1:0")))
    @thread = Thread.new { @server.run }
  end

  def peer(*fields)
    WebsocketPeer.new(@url, "", fields.map { |field| "#{field}\r\n".b }.join)
  end

  def answer_to(request)
    RawClient.open(@url) do |raw|
      raw.write(request)
      return raw.response
    end
  end

  def assert_open(*fields)
    peer(*fields).tap { |peer| assert_equal "welcome", peer.hear }.close
  end

  def assert_refused(*fields)
    @body = @answer[2] = Body.new(["of the application"])
    peer(*fields).tap { |peer| assert_match(%r{\AHTTP/1.1 403 Forbidden\r\n}, peer.head, fields.inspect) }.close
    assert @body.closed
  end

  # ---- origins ----

  def test_everybody_may_by_default
    serve
    assert_open
    assert_open "Origin: https://evil.example"
  end

  def test_pages_of_the_same_host
    serve(allowed_origins: :same, trusted_proxies: [])
    assert_open
    assert_open "Origin: http://a"
    ["https://evil.example", "", "null", "http://a.evil.example", "http://evil.example/a", "http://a@evil.example", "\xff\xfe",
     "http://#{"a" * 50_000}"].each { |origin| assert_refused "Origin: #{origin}" }
    assert_refused "Origin: http://evil.example", "X-Forwarded-Host: evil.example"
    assert_refused "Origin: http://a", "Origin: http://evil.example"
    assert_equal 10, @log.lines.grep(/\Ainfo: Refused a WebSocket of 127.0.0.1: origin "/).size
    assert_operator @log.lines.map(&:size).max, :<, 300
  end

  def test_the_host_that_a_trusted_proxy_names
    serve(allowed_origins: :same, trusted_proxies: ["127.0.0.0/8"])
    assert_open "Origin: https://www.example", "X-Forwarded-Host: www.example"
    assert_refused "Origin: https://evil.example", "X-Forwarded-Host: www.example"
    assert_refused "Origin: https://www.example", "Forwarded: host=www.example"
  end

  def test_the_host_that_a_trusted_proxy_names_in_forwarded
    serve(allowed_origins: :same, trusted_proxies: ["127.0.0.0/8"], trusted_proxy_fields: :forwarded)
    assert_open "Origin: https://www.example", "Forwarded: host=www.example"
    assert_refused "Origin: https://www.example", "X-Forwarded-Host: www.example"
  end

  def test_a_callable_decides_alone
    serve(allowed_origins: ->(env) { env["HTTP_ORIGIN"] == "odd" })
    assert_open "Origin: odd"
    assert_refused
  end

  def test_an_exception_of_the_callable
    serve(allowed_origins: ->(_) { raise "out of the check" })
    assert_match(%r{\AHTTP/1.1 500 }, peer.head)
    assert_match(/out of the check/, @log.lines.join)
  end

  def test_a_stream_of_events_is_left_to_the_browser
    serve(allowed_origins: :same)
    RawClient.open(@url) do |raw|
      raw.write("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\nOrigin: https://evil.example\r\n\r\n")
      assert_match(%r{\AHTTP/1.1 200 }, raw.read_some)
    end
  end

  # ---- requests that are not a handshake ----

  PLAIN = "GET /page HTTP/1.1\r\nHost: a\r\n\r\n"

  def test_a_request_that_cannot_be_upgraded_and_has_no_answer
    serve
    answer = answer_to(PLAIN)
    assert_equal 426, answer.status
    assert_equal %w[websocket 13 upgrade], %w[upgrade sec-websocket-version connection].map { |name| answer.header(name) }
    assert @body.closed
    assert_equal 426, answer_to(WebsocketPeer::HANDSHAKE.sub(": 13", ": 8").gsub("%s", "")).status
    assert_equal 1, @log.lines.grep(/\Awarn: UpgradeRefusedTest::Greeter: rack.upgrade is set for a request .*page/).size, "once"
  end

  def test_a_request_that_cannot_be_upgraded_and_has_one
    @answer = [200, { "x-own" => "1" }, ["page"]]
    serve
    assert_equal %w[1 page], answer_to(PLAIN).then { |answer| [answer.header("x-own"), answer.body] }
    assert_equal 1, @log.lines.grep(/rack.upgrade is set/).size
  end

  def test_an_answer_that_refuses_is_no_mistake
    @answer = [404, {}, ["none"]]
    serve
    assert_equal 404, answer_to(PLAIN).status
    assert_empty @log.lines
  end

  def test_without_a_handler_there_is_no_answer_without_a_status
    @handler = nil
    serve
    assert_equal 500, answer_to(PLAIN).status
  end

  # ---- protocols ----

  def protocol(given, *offers)
    @answer[1] = { "sec-websocket-protocol" => given }
    head = peer(*offers.map { |offer| "Sec-WebSocket-Protocol: #{offer}" }).tap(&:hear).head
    head.scan(/^sec-websocket-protocol: (.*)\r?$/i).flatten.map(&:chomp)
  end

  def test_only_one_of_the_protocols_that_were_offered
    serve
    assert_equal ["b"], protocol("b", "a, b", "c")
    assert_equal ["c"], protocol("c", "a, b", "c")
    assert_empty @log.lines
    assert_equal ["b"], protocol("x, b, a", "a, b")
    assert_equal ["a"], protocol(%w[x a b], "a, b")
    assert_empty protocol("x", "a, b")
    assert_empty protocol("A", "a")
    assert_empty protocol("a", "ab, xa")
    assert_empty protocol("a")
    assert_empty protocol("", "a")
    assert_equal 1, @log.lines.grep(/\Awarn: UpgradeRefusedTest::Greeter: the response names a sec-websocket-protocol/).size
  end
end
