# frozen_string_literal: true

# rack.upgrade: a handler and its client. Which callback runs when, what can be sent, how it ends.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "support/server_process"
require "support/websocket_peer"

class UpgradeTest < RackCase
  F = WebsocketFrames
  # Records its callbacks; runs the message.
  APP = <<~RUBY
    class Handler
      def note(text) = warn("told: \#{text}")
      def on_open(client)
        note "open \#{client.protocol} \#{client.env["PATH_INFO"]} \#{client.handler == self} \#{client.open?}"
        client.write("welcome")
      end
      def on_message(client, data)
        note "message \#{data.encoding} \#{data}"
        case data
        when "binary" then client.write("\\xff\\x00".b)
        when "json" then client.write({ "a" => [1, nil] })
        when "types" then client.write(1)
        when "broken" then client.write("\\xff")
        when "close" then client.close(3001, "enough")
        when "code" then client.close(1005)
        when "raise" then raise "out of a callback"
        when "thread" then Thread.new { client.write("from a thread") }.join
        when "pending" then client.write(client.pending.to_s)
        when "slow" then IO.select(nil, nil, nil, 0.01) until File.exist?("go")
        else client.write(data)
        end
      rescue TypeError, ArgumentError => e
        client.write("\#{e.class}: \#{e.message}")
      end
      def on_drained(client) = nil
      def on_shutdown(client) = client.write("last words")
      def on_close(client)
        note "close \#{client.close_code} \#{client.close_reason.inspect} \#{client.open?} \#{client.write("x")} \#{client.pending}"
      end
    end
    module Silent; end
    run lambda { |env|
      case env["PATH_INFO"]
      when "/silent" then env["rack.upgrade"] = Silent
      when "/refused" then env["rack.upgrade"] = Handler.new
                           next [403, {}, ["no"]]
      else env["rack.upgrade"] = Handler.new
      end
      warn "can: \#{env.fetch("rack.upgrade?").inspect}"
      body = Object.new
      def body.each; end
      def body.close = warn("body closed")
      [0, { "set-cookie" => "a=b", "content-length" => "5", "sec-websocket-protocol" => "chat" }, body]
    }
  RUBY

  def setup
    super
    @peers = []
  end

  def teardown
    @peers.each(&:close)
    super
  end

  def peer(server, path = "", fields = "")
    WebsocketPeer.new(server.url, path, fields).tap { |peer| @peers << peer }
  end

  def with_app(app = APP, **options)
    Dir.mktmpdir("rondo-upgrade") do |folder|
      File.write(File.join(folder, "config.ru"), app)
      ServerProcess.run(File.join(folder, "config.ru"), spawn: { chdir: folder }, **options) do |server|
        yield server, folder
      ensure
        @peers.each(&:close) # otherwise the server waits for them at its end
      end
    end
  end

  def told(server)
    server.log.scan(/^told: (.*)$/).flatten
  end

  def test_the_life_of_a_client
    with_app do |server|
      client = peer(server, "chat", "Sec-WebSocket-Protocol: chat\r\n")
      assert_match(%r{\AHTTP/1.1 101 Switching Protocols\r\n}, client.head)
      assert_match(/^set-cookie: a=b\r$/, client.head)
      assert_match(/^sec-websocket-protocol: chat\r?$/, client.head)
      refute_match(/content-length|transfer-encoding/, client.head)
      assert_equal "welcome", client.hear
      assert_equal "hällo", client.ask("hällo").force_encoding("UTF-8")
      assert_equal "\xff\x00".b, client.ask("binary")
      assert_equal '{"a":[1,null]}', client.ask("json")
      assert_match(/\ATypeError: a String, Hash or Array can be sent, not Integer/, client.ask("types"))
      assert_match(/\AArgumentError: .*UTF-8/, client.ask("broken"))
      assert_match(/\AArgumentError: 1005/, client.ask("code"))
      assert_equal "from a thread", client.ask("thread")
      assert_equal "0", client.ask("pending")
      client.say("close")
      assert_equal [3001, "enough"], client.hear_close
      client.send_bytes(F.close(3001))
      assert_nil client.next_frame
      client.close
      server.wait_for_log(/told: close/)
      assert_equal ["open websocket /chat true true", "message UTF-8 hällo"], told(server).first(2).map { |line| line.dup.force_encoding("UTF-8") }
      assert_equal 'close 3001 "enough" false false -1', told(server).last
      server.wait_for_log(/^can: :websocket$/)
      server.wait_for_log(/^body closed$/)
    end
  end

  def test_how_the_peer_ends
    with_app do |server|
      [[F.close(4000, "bye"), 'close 4000 "bye"', [4000, "bye"]], [F.frame(F::CLOSE), 'close 1005 ""', [nil, nil]],
       [F.frame(3), 'close 1002 "reserved opcode"', [1002, "reserved opcode"]]].each do |bytes, line, answer|
        client = peer(server)
        client.hear
        client.send_bytes(bytes)
        assert_equal answer, client.hear_close
        client.close
        server.wait_for_log(/^told: #{Regexp.escape(line)} false/)
      end
      peer(server).close
      server.wait_for_log(/^told: close 1006 "" false/)
    end
  end

  def test_an_exception_ends_its_connection_and_no_other
    with_app do |server|
      one, other = Array.new(2) { peer(server).tap(&:hear) }
      one.say("raise")
      assert_equal [1011, ""], one.hear_close
      server.wait_for_log(/out of a callback/)
      assert_equal "still here", other.ask("still here")
    end
  end

  def test_messages_come_one_after_the_other_and_before_the_close
    with_app do |server, folder|
      client = peer(server)
      client.hear
      client.send_bytes([*("a".."e"), "slow", *("f".."j")].map { |text| F.frame(F::TEXT, text) }.join + F.close)
      server.wait_for_log(/^told: message UTF-8 slow/)
      other = peer(server)
      assert_equal "welcome", other.hear, "nobody waits for a callback that does"
      File.write(File.join(folder, "go"), "")
      assert_equal [*("a".."j")], Array.new(10) { client.hear }
      assert_equal [1000, ""], client.hear_close
      client.close
      server.wait_for_log(/^told: close 1000/)
      assert_equal([*("a".."e"), "slow", *("f".."j")], server.log.scan(/^told: message UTF-8 (\S+)$/).flatten)
    end
  end

  # By then its place belongs to the next client, which has asked already.
  def test_a_client_that_leaves_before_it_is_upgraded_takes_nothing_from_the_next
    entered = Queue.new
    gate = Queue.new
    running = start(lint: false, max_threads: 2) do |env|
      next [200, {}, [env["PATH_INFO"]]] if env["PATH_INFO"] != "/ws"
      entered << true
      gate.pop
      env["rack.upgrade"] = Class.new { def on_message(client, data); end }.new
      [0, {}, []]
    end
    leaving = connect(running)
    assert_equal "/first", get(leaving, "/first").body
    leaving.write(format(WebsocketPeer::HANDSHAKE, "ws", ""))
    take(entered)
    leaving.reset
    eventually("its connection is gone") { running.server.stats[:connections].zero? }
    staying = connect(running)
    assert_equal "/second", get(staying, "/second").body
    gate << true
    eventually("the upgrade is over") { running.server.stats[:busy].zero? }
    3.times { assert_equal "/third", get(staying, "/third").body }
  end

  def test_a_handler_without_callbacks
    with_app do |server|
      client = peer(server, "silent")
      client.say("anybody?").send_bytes(F.frame(F::PING, "p"))
      assert_equal [F::PONG, "p"], client.next_frame.to_a.first(2)
      client.send_bytes(F.close)
      assert_equal [1000, ""], client.hear_close
    end
  end

  # The env of the application's call, read when the request is long over.
  ENV_APP = <<~RUBY
    OVER = %w[rack.hijack rack.response_finished rack.early_hints HTTP_SEC_WEBSOCKET_KEY].freeze
    class Asked
      def initialize(env) = @before = env
      def on_message(client, data)
        env = client.env
        client.write(case data
                     when "equal" then (@before.reject { |key, _| OVER.include?(key) } == env.reject { |key, _| OVER.include?(key) }).to_s
                     when "order" then (@before.keys - OVER == env.keys - OVER).to_s
                     when "own" then env["app.object"].equal?(@before["app.object"]).to_s
                     when "once" then (env.equal?(client.env) && env["rack.upgrade"].equal?(self)).to_s
                     when "change" then %w[PATH_INFO QUERY_STRING HTTP_HOST HTTP_COOKIE HTTP_X_LONG].each { |key| env[key] << "+" }.map { |key| env[key] }.join(" ")
                     else env.key?(data).to_s
                     end)
      end
    end
    run lambda { |env|
      env.delete("SCRIPT_NAME") if env["PATH_INFO"] == "/deleted"
      env["app.object"] = Object.new
      env["app.text"] = "für"
      env[:symbol] = nil
      env["rack.upgrade"] = Asked.new(env.dup.tap { |copy| copy.each { |key, value| copy[key] = value.dup if String === value } })
      env["rack.upgrade"].instance_variable_get(:@before)["rack.upgrade"] = env["rack.upgrade"]
      [0, {}, []]
    }
  RUBY

  def test_the_env_of_the_request
    with_app(ENV_APP) do |server|
      fields = "Cookie: a=b\r\nX-Long: #{"long" * 20}\r\n"
      clients = %w[path?q=1 path?q=1 deleted?q=1].map { |path| peer(server, path, fields) }
      clients.each do |client|
        %w[equal order own once].each { |question| assert_equal "true", client.ask(question), question }
      end
      assert_equal %w[true true false], clients.map { |client| client.ask("SCRIPT_NAME") }
      clients.first(2).each do |client|
        assert_equal "/path+ q=1+ a+ a=b+ #{"long" * 20}+", client.ask("change"), "nobody else's Strings"
      end
    end
  end

  def test_what_is_not_upgraded
    with_app do |server|
      assert_match(%r{\AHTTP/1.1 403 }, peer(server, "refused").head)
      RawClient.open(server.url) do |raw|
        raw.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal 426, raw.response.status, "status 0 is one for upgrades only"
      end
      server.wait_for_log(/^can: nil$/)
    end
  end

  # RFC 6455 section 4.2.2 and RFC 9110 section 15.5.22: the application may name the version that it speaks.
  def test_a_version_that_is_not_spoken
    app = lambda do |env|
      env["rack.upgrade"] = Module.new if env["rack.upgrade?"]
      next [200, {}, []] if env["rack.upgrade?"] || !env["HTTP_SEC_WEBSOCKET_VERSION"]

      [426, { "upgrade" => "websocket", "sec-websocket-version" => "13" }, []]
    end
    client = serve(app, lint: false)
    ["8", "13, 8", "", "013", "14"].each do |version|
      response = client.request(format(WebsocketPeer::HANDSHAKE, "", "").sub("Version: 13", "Version: #{version}"))
      assert_equal [426, "13", "websocket"], [response.status, response.header("sec-websocket-version"), response.header("upgrade")]
      assert_match(/\bupgrade\b/, response.header("connection"))
      refute response.close?
    end
    assert_equal 200, get(client).status
    assert_match(%r{\AHTTP/1.1 101 }, peer(@running.last).head)
  end

  def test_last_words_at_shutdown
    with_app do |server|
      client = peer(server)
      client.hear
      server.signal("TERM")
      assert_equal "last words", client.hear
      assert_equal [1001, "going away"], client.hear_close
      client.send_bytes(F.close(1001))
      assert_nil client.next_frame
      client.close
      server.wait_for_log(/^told: close 1001/)
    end
  end

  def test_silence_is_pinged_and_then_ended
    with_app(settings: { ping_interval_ms: 50 }) do |server|
      client = peer(server)
      client.hear
      assert_equal F::PING, client.next_frame.opcode
      assert_nil client.next_frame
      server.wait_for_log(/^told: close 1006/)
    end
  end

  def test_a_client_that_does_not_read_is_closed
    with_app(settings: { max_pending_bytes: 65_536, max_message_bytes: 1 << 20 }) do |server|
      client = peer(server)
      client.hear
      frame = F.frame(F::TEXT, "x" * 100_000)
      writer = Thread.new { client.send_bytes(frame) while true } # rubocop:disable Style/InfiniteLoop
      writer.report_on_exception = false
      server.wait_for_log(/^told: close 1013 "too slow"/)
      assert_raises(SystemCallError, IOError, RawClient::Timeout) { writer.value }
    end
  end

  def test_workers
    with_app(args: ["-w", "2"]) do |server|
      clients = Array.new(6) { peer(server).tap(&:hear) }
      clients.each_with_index { |client, index| assert_equal index.to_s, client.ask(index.to_s) }
      server.signal("USR1")
      ends = clients.map { |client| Thread.new { [client.hear, client.hear_close].tap { client.close } } }
      assert_equal([["last words", [1001, "going away"]]] * 6, ends.map(&:value))
    end
  end
end
