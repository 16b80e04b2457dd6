# frozen_string_literal: true

# A page with signed names subscribes by WebSocket and by a stream of events, in one process and in workers; a stream that
# comes back goes on where it was.
# SPDX-License-Identifier: MIT

require_relative "../control/control_case"
require "cgi"
require "rondo"
require "support/open_stream"
require "support/websocket_peer"

class SignedSubscriptionsTest < ControlCase
  SECRET = "a secret of the tests"
  APP = <<~RUBY
    Rondo::PubSub.history("kept", size: 10)
    map("/events") { run Rondo::Signed::Subscriptions.new }
    map("/sign") { run ->(env) { [200, {}, [Rondo::Signed.channel(env["QUERY_STRING"], expires_in: 3600)]] } }
    map("/publish") { run ->(env) { [200, {}, [Rondo.publish(*env["QUERY_STRING"].split("=", 2)).to_s]] } }
  RUBY

  def setup
    super
    write "config.ru", APP
    write "rondo.rb", "signing_secret #{SECRET.inspect}, 'another secret of the tests'\n"
    @peers = []
    Rondo::Signed.secrets = SECRET
  end

  def teardown
    Rondo::Signed.secrets = nil
    @peers.each(&:close)
    super
  end

  def test_in_one_process_and_in_workers
    [[], %w[-w 2], %w[-w 2 --preload]].each do |words|
      server = start("-C", "rondo.rb", *words)
      stream = open_stream(server, signed("news"), Rondo::Signed.channel("kept"))
      socket = peer(server, signed("news"), signed("other"))
      assert_includes stream.head, "access-control-allow-origin: *"
      eventually("the stream is subscribed") { publish(server, "news", "one") and stream.heard?("one") }
      socket.say("nothing reads this").say("news=nor this")
      eventually("the socket is subscribed") { publish(server, "other", "two") and socket.wait_readable(0.01) }
      heard = []
      heard << socket.hear until heard.last == "two"
      assert_equal "two", heard.last
      refute_includes heard, "nothing reads this"
    end
  end

  # A secret that differs at two machines is found by that.
  def test_what_is_refused_is_counted_and_said_once
    server = controlled("-C", "rondo.rb")
    3.times { assert_equal "403", get(server, "/events?channel=forged", { "accept" => "text/event-stream" }).code }
    server.wait_for_log(/! A signed name of a channel was refused \(403\) for 127\.0\.0\.\d+: it is forged, or has expired/)
    assert_match(/^rondo_signed_refused_total\{worker="0"\} 3$/, control(server, "/metrics").body)
    assert_equal 1, server.log.scan("A signed name").size
  end

  def test_what_is_refused
    server = start("-C", "rondo.rb")
    now = Process.clock_gettime(Process::CLOCK_REALTIME)
    old = [%({"_rails":{"message":"ImEi","exp":"#{Time.at(now - 1).utc.iso8601(3)}","pur":null}})].pack("m0")
    old << "--" << OpenSSL::HMAC.hexdigest("SHA256", SECRET, old)
    ["", "?channel=news", "?channel=#{signed("news").chop}0x", "?channel=#{CGI.escape(old)}"].each do |query|
      [{ "accept" => "text/event-stream" }, {}].each do |fields|
        answer = get(server, "/events#{query}", fields)
        assert_equal ["403", 1], [answer.code, answer.body.lines.size], query
      end
    end
    assert_equal "406", get(server, "/events?channel=#{CGI.escape(signed("news"))}").code
  end

  def test_a_stream_goes_on_after_the_last_event_that_it_saw
    server = start("-C", "rondo.rb", "-w", "2")
    first = open_stream(server, signed("kept"))
    eventually("it is subscribed") { publish(server, "kept", "one") and first.heard?("one") }
    id = first.text[/^id: ?(\d+)\ndata: ?one|data: ?one\nid: ?(\d+)/, 1] || Regexp.last_match(2)
    publish(server, "kept", "two")
    assert first.hears?("two") # "three" may come by the other worker
    first.close
    publish(server, "kept", "three")
    again = open_stream(server, signed("kept"), last: id)
    assert again.hears?("three")
    assert_match(/two.*three/m, again.text)
    assert_equal 1, again.text.scan("two").size
  end

  # By default a client stays: what it has seen it has seen, and it is verified when it comes back.
  def test_clients_of_names_that_expire_are_ended_if_that_is_wanted
    write "config.ru", APP.sub("Subscriptions.new", "Subscriptions.new(end_expired: true)") +
                       %(map("/staying") { run Rondo::Signed::Subscriptions.new }\n)
    [[], %w[-w 2 --preload]].each do |words|
      server = start("-C", "rondo.rb", *words)
      server.wait_for_log(/(?:booted.*){#{words[1].to_i}}/m)
      lasting, soon = signed("news"), Rondo::Signed.channel("soon", expires_in: 10)
      streams = [open_stream(server, lasting), open_stream(server, soon), open_stream(server, lasting, soon)]
      sockets = [peer(server, lasting), peer(server, soon)]
      staying = WebsocketPeer.new(server.url, "staying?channel=#{CGI.escape(soon)}").tap { |peer| @peers << peer }
      streams.last(2).each { |stream| assert stream.ended?(PATIENCE), stream.text }
      assert_equal 1008, sockets.last.hear_close.first
      [sockets.first, staying].zip(%w[news soon]) do |socket, channel|
        eventually("it is still subscribed") { publish(server, channel, "one") and socket.wait_readable(0.01) }
        assert_equal "one", socket.hear
      end
      eventually("so is the stream") { publish(server, "news", "two") and streams.first.heard?("two") }
      assert_equal "403", get(server, "/events?channel=#{CGI.escape(soon)}", { "accept" => "text/event-stream" }).code
    end
  end

  def test_secrets_that_are_refused
    write "bad.rb", "signing_secret 'hidden'\n"
    result = rondo("-C", "bad.rb", "-p", "0")
    assert_complaint 1, /bad.rb:1: signing_secret must be 1 to 16 Strings of 16 bytes or more/, result
    refute_includes result.err, "hidden"
    result = rondo("-p", "0", env: { "RONDO_SIGNING_SECRET" => "hidden" })
    assert_complaint 1, /RONDO_SIGNING_SECRET must be 1 to 16 Strings of 16 bytes or more/, result
    refute_includes result.err, "hidden"
  end

  def test_the_variable
    server = start(env: { "RONDO_SIGNING_SECRET" => "the-new-secret-of-all #{SECRET.tr(" ", "-")}" })
    Rondo::Signed.secrets = SECRET.tr(" ", "-")
    assert_equal "406", get(server, "/events?channel=#{CGI.escape(signed("news"))}").code
    Rondo::Signed.secrets = "the-new-secret-of-all"
    assert_equal "a", Rondo::Signed.verified(get(server, "/sign?a").body), "the first one signs"
  end

  # Workers get the secret, too.
  def test_a_program_with_a_secret
    write "program.rb", <<~RUBY
      require "rondo"
      app = ->(env) { [200, {}, [Rondo::Signed.channel("a")]] }
      Rondo.start(app, bind: "tcp://127.0.0.1:0", workers: 1, signing_secret: ["the first one of two", "the second one of two"])
    RUBY
    program = Program.new("#{@folder}/program.rb", spawn: { chdir: @folder }, env: BLANK).tap { |one| @servers << one }
    Rondo::Signed.secrets = "the first one of two"
    assert_equal "a", Rondo::Signed.verified(get(program).body)
  end

  private

  def signed(name) = Rondo::Signed.channel(name, expires_in: 3600)

  def query(names) = names.map { |name| "channel=#{CGI.escape(name)}" }.join("&")

  def open_stream(server, *names, last: nil)
    OpenStream.new(server.port, "/events?#{query(names)}", last: last).tap { |stream| @peers << stream }
  end

  def peer(server, *names)
    WebsocketPeer.new(server.url, "events?#{query(names)}").tap { |peer| @peers << peer }
  end

  def publish(server, channel, text)
    get(server, "/publish?#{channel}=#{text}").body == "true"
  end
end
