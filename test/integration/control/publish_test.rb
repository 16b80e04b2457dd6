# frozen_string_literal: true

# Programs outside of the server publish through its control server: by POST, by `rondo publish`, and by
# Rondo::Publisher.
# SPDX-License-Identifier: MIT

require_relative "../http2/attacks"
require_relative "control_case"
require "rondo"
require "support/open_stream"
require "support/redis_server"

class PublishTest < ControlCase
  APP = <<~RUBY
    Rondo::PubSub.history("kept", size: 10)
    class Feed
      def initialize(path) = @path = path
      def on_open(client) = client.subscribe(@path.delete_prefix("/"))
    end
    run(proc do |env|
      next [200, {}, ["hello"]] unless env["rack.upgrade?"]
      env["rack.upgrade"] = Feed.new(env["PATH_INFO"])
      [200, {}, []]
    end)
  RUBY
  MEBI = 1 << 20

  def setup
    super
    write "config.ru", APP
    @streams = []
  end

  def teardown
    @streams.each(&:close)
    super
  end

  def test_with_and_without_workers
    [[], %w[-w 2], %w[-w 1 --preload]].each do |words|
      server = controlled(*words)
      feed = feeds(server, "news")
      assert_equal [200, "{\"published\":1}\n"], post(server, '{"channel":"news","data":"one"}')
      assert_equal [200, "{\"published\":2}\n"], post(server, '[{"stream":"news","data":{"two":2}},{"channel":"news","data":"three"}]')
      assert feed.hears?("three"), feed.text
      assert_match(/data: ?one\n.*data: ?\{"two":2\}\n.*data: ?three/m, feed.text)
    end
  end

  def test_curl
    server = controlled("-w", "2")
    feed = feeds(server, "news")
    url = "http://127.0.0.1:#{control_port(server)}/publish"
    curl = ->(*words) { run_command("curl", "-sS", "-m", PATIENCE.to_s, "-w", "%{http_code}", "-H", "Authorization: Bearer #{TOKEN}", *words, url).out }
    assert_equal "{\"published\":1}\n200", curl.call("-d", '{"channel":"news","data":"by curl"}')
    assert feed.hears?("by curl")
    url << "?confirm=29.5"
    assert_equal "{\"published\":1,\"messages\":[true]}\n200", curl.call("-d", '{"channel":"news","data":"confirmed"}')
    url.delete_suffix!("?confirm=29.5")
    write "big.json", JSON.generate("channel" => "news", "data" => "#{"x" * 900_000} the end")
    [[], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"], ["--http2-prior-knowledge"]].each do |words|
      assert_equal "{\"published\":1}\n200", curl.call(*words, "--data-binary", "@#{@folder}/big.json"), words.to_s
      assert feed.hears?("the end"), words.to_s
      feed.text.clear
    end
  end

  # @return [Integer] how many of 300 streams were refused before any of the last client was answered
  def refused_streams(server)
    clients = Array.new(3) { HTTP2Attacks::Client.new(control_port(server)) }
    clients.each do |client|
      (1..199).step(2) { |id| client.say(HTTP2Attacks.post(id, "/publish", "content-length" => "9")) }
      client.say(HTTP2Attacks.frame(HTTP2Attacks::PING, 0, 0, "12345678"))
      nil until client == clients.last || client.hear.first == HTTP2Attacks::PING
    end
    refused = 0
    while refused < 300 - 256 && (type = clients.last.hear.first) != HTTP2Attacks::HEADERS
      refused += 1 if type == HTTP2Attacks::RST_STREAM
    end
    refused
  ensure
    clients.each(&:close)
  end

  # Each stream has some memory for its body, whoever sends it. On a machine that stands still they may be answered
  # (408) before all of them are there.
  def test_streams_of_all_clients
    server = controlled
    assert(Array.new(3).any? { refused_streams(server) == 300 - 256 })
    assert_equal "live\n", control(server, "/live").body
  end

  def test_who_may_and_what_is_refused
    server = controlled
    feed = feeds(server, "news")
    good = '{"channel":"news","data":"not this"}'
    [nil, "wrong", TOKEN.swapcase, "#{TOKEN}x"].each { |token| assert_equal 403, post(server, good, token: token).first, token.to_s }
    assert_equal "405", control(server, "/publish").code
    ["", "{", "[]", good.sub("news", ""), "[#{good},{}]", "\xff"].each do |body|
      status, text = post(server, body)
      assert_equal [400, 1], [status, text.lines.size], body
    end
    assert_equal 413, post(server, "x" * (MEBI + 1)).first
    assert_equal 400, post(server, "x" * MEBI).first
    assert_equal 413, post(server, "x" * 5000, token: "wrong").first, "a long body needs the token from the start"
    post(server, '{"channel":"news","data":"the last"}')
    assert feed.hears?("the last")
    refute_includes feed.text, "not this"
  end

  def test_a_server_that_only_shows_numbers
    write "rondo.rb", "activate_control_app 'tcp://127.0.0.1:0', auth_token: '#{TOKEN}', data_only: true\n"
    server = start("-C", "rondo.rb")
    server.wait_for_log(/Use Ctrl-C/)
    assert_equal 404, post(server, '{"channel":"news","data":"m"}').first
  end

  def test_messages_that_are_kept_have_ids
    server = controlled("-w", "2")
    post(server, '{"channel":"kept","data":"one"}')
    first = feeds(server, "kept")
    post(server, '{"channel":"kept","data":"two"}')
    assert first.hears?("two")
    id = first.text[/id: ?(\d+)/, 1]
    post(server, '[{"channel":"kept","data":"three"},{"channel":"kept","data":"four"}]')
    again = open_stream(server, "kept", last: id)
    assert again.hears?("four")
    assert_match(/three.*four/m, again.text)
  end

  # A megabyte each, and none of them ends.
  def test_bodies_that_stop
    server = controlled
    head = "POST /publish HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{TOKEN}\r\nContent-Length: #{MEBI}\r\n\r\n"
    stopped = Array.new(60) { TCPSocket.new("127.0.0.1", control_port(server)).tap { |socket| @sockets << socket } }
    stopped.each { |socket| send_most(socket, head + ("x" * (MEBI - 1))) }
    assert_equal "200", control(server, "/status").code
    answers = stopped.map { |socket| socket.wait_readable(PATIENCE) && first_line(socket) }
    codes = answers.map { |line| line.to_s[/ (\d{3}) /, 1] }.uniq
    assert_includes codes, "408", "by the deadline"
    assert_empty codes - ["408", "507", nil], "or as there is no room: then the rest of the body may reset the connection"
    feed = feeds(server, "news")
    assert_equal 200, post(server, '{"channel":"news","data":"afterwards"}').first
    assert feed.hears?("afterwards")
  end

  SLOW_ENGINE = <<~RUBY
    class Slow < Rondo::PubSub::Engine
      def publish(channel, message)
        IO.select([File.open("gate", "r+")]) if channel == "slow"
        Rondo::PubSub::PROCESS.publish(channel, message)
      end
    end
    pubsub_engine { Slow.new }
  RUBY

  # An engine should not wait, but may. Verbs do not wait for it, and requests above a limit are answered at once.
  def test_an_engine_that_waits
    File.mkfifo(File.join(@folder, "gate"))
    write "rondo.rb", SLOW_ENGINE
    server = controlled("-C", "rondo.rb")
    body = '{"channel":"slow","data":"m"}'
    head = "POST /publish HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer #{TOKEN}\r\nContent-Length: #{body.bytesize}\r\n\r\n"
    waiting = Array.new(80) { TCPSocket.new("127.0.0.1", control_port(server)).tap { |socket| @sockets << socket } }
    waiting.each { |socket| socket.write(head + body) }
    assert_equal "200", control(server, "/gc-stats", verb: :post).code
    codes = waiting.map { |socket| socket.wait_readable(PATIENCE) && first_line(socket)[/\d{3}/] }
    assert_empty codes.uniq - %w[503 504]
    assert_operator codes.count("504"), :>=, 64, "more if the first ones have no answer before the last ones come"
  ensure
    open_gate
  end

  # The one that the engine has not returned from is not known; those behind it are not published later.
  def test_what_is_known_of_a_batch_when_the_engine_is_stuck
    File.mkfifo(File.join(@folder, "gate"))
    write "rondo.rb", SLOW_ENGINE
    server = controlled("-C", "rondo.rb")
    feed = feeds(server, "news")
    error = assert_raises(Rondo::Publisher::Error) { publisher(server).publish_all([%w[news one], %w[slow two], %w[news never]]) }
    assert_equal [504, 1, [true, nil, false]], [error.status, error.published, error.messages]
    open_gate
    eventually("it goes on") { post(server, '{"channel":"news","data":"last"}').first == 200 }
    assert feed.hears?("last")
    refute_includes feed.text, "never"
  ensure
    open_gate
  end

  # Ids that a server somewhere else has, too.
  def test_the_engine_answers
    redis = RedisServer.new
    one, two = Array.new(2) { controlled("-w", "2", "--redis-streams", redis.url) }
    far = feeds(two, "kept")
    first = publisher(one).publish("kept", "early", confirm: 30)
    assert_kind_of Integer, first
    assert_equal true, publisher(one).publish("news", "not kept", confirm: 30)
    ids = publisher(one).publish_all([%w[kept second], %w[news m], %w[kept third]], confirm: 30)
    assert_equal [Integer, TrueClass, Integer], ids.map(&:class)
    assert_equal [first, ids[0], ids[2]], [first, ids[0], ids[2]].sort.uniq
    assert far.hears?("third")
    assert_match(/id: ?#{ids[0]}\n/, far.text)
    assert_match(/id: ?#{ids[2]}\n/, far.text)
    words = ["--control-url", control_url(one), "-T", TOKEN]
    result = rondo("publish", "kept", "by the command", "--confirm", "30", *words)
    assert_equal [0, ""], [result.code, result.err]
    assert_operator result.out.to_i, :>, ids[2]
    assert_quiet rondo("publish", "news", "m", "--confirm", "30", *words)
    assert_complaint 1, /confirm must be seconds, from 0.001 to 30/, rondo("publish", "news", "m", "--confirm", "31", *words)
    assert_complaint 1, /invalid argument: --confirm x/, rondo("publish", "news", "m", "--confirm", "x", *words)
    assert_equal 400, post(one, '{"channel":"kept","data":"m"}', query: "?confirm=0").first
    assert_equal [400, %({ "error": "unknown parameter confrim; there is confirm" }\n)],
                 post(one, '{"channel":"kept","data":"m"}', query: "?confrim=1")
    redis.freeze_process
    error = assert_raises(Rondo::Publisher::Error) { publisher(one).publish_all([%w[kept a], %w[news b]], confirm: 0.3) }
    assert_equal [504, 0, [nil, nil]], [error.status, error.published, error.messages]
    assert_complaint 1, /says 504: the engine did not answer in time/, rondo("publish", "news", "m", "--confirm", "0.3", *words)
    redis.thaw
    assert far.hears?("data: a\n")
  ensure
    redis&.thaw
    redis&.close
  end

  # Without an engine the server itself has the message.
  def test_confirm_without_an_engine_and_with_one_that_cannot
    [[], %w[-w 2]].each do |words|
      server = controlled(*words)
      assert_equal [200, "{\"published\":1,\"messages\":[true]}\n"], post(server, '{"channel":"news","data":"m"}', query: "?confirm=5")
      server.stop
    end
    write "rondo.rb", SLOW_ENGINE
    [[], %w[-w 2]].each do |words|
      server = controlled("-C", "rondo.rb", *words)
      status, text = post(server, '[{"channel":"news","data":"m"},{"channel":"news","data":"n"}]', query: "?confirm=30")
      assert_equal [501, { "error" => Rondo::PubSub::CANNOT_CONFIRM, "published" => 0, "messages" => [false, false] }], [status, JSON.parse(text)]
      server.stop
    end
  end

  # The worker of the only subscriber stands still.
  def test_a_queue_that_is_full
    write "rondo.rb", "hub_queue_bytes 2**20\n"
    server = controlled("-C", "rondo.rb", "-w", "1")
    feed = feeds(server, "news")
    worker = JSON.parse(control(server, "/stats").body).fetch("worker_status").first.fetch("pid")
    batch = JSON.generate([{ channel: "news", data: "x" * 9000 }] * 100)
    Process.kill("STOP", worker)
    answer = eventually("it is full") { post(server, batch).then { |status, text| JSON.parse(text) if status == 503 } }
    assert_includes 0...100, answer.fetch("published")
    assert_match(/no room for this message/, answer.fetch("error"))
    Process.kill("CONT", worker)
    eventually("there is room again") { post(server, '{"channel":"news","data":"afterwards"}').first == 200 }
    assert feed.hears?("afterwards")
  ensure
    Process.kill("CONT", worker) if worker
  end

  def test_two_servers_and_redis
    redis = RedisServer.new
    [%w[-r], %w[-w 2 -r], %w[-w 2 --redis-streams]].each do |words|
      one, two = Array.new(2) { controlled(*words, redis.url) }
      channel = "kept"
      far = open_stream(two, channel)
      eventually("the far one is subscribed") { post(one, JSON.generate(channel: channel, data: "early")) && far.heard?("early") }
      assert_equal [200, "{\"published\":2}\n"], post(one, JSON.generate(%w[first second].map { |data| { channel: channel, data: data } }))
      assert far.hears?("second")
      assert_match(/first.*second/m, far.text)
      [one, two].each(&:stop)
    end
  ensure
    redis&.close
  end

  def test_the_command
    server = controlled("-w", "2", "-S", "state")
    feed = feeds(server, "news")
    assert_quiet rondo("publish", "news", "by the command", "-S", "state")
    assert feed.hears?("by the command")
    write "message", "several\nlines ☃"
    assert_quiet run_command(*RONDO, "publish", "news", "-", "-S", "state", stdin: "message")
    assert feed.hears?("lines ☃")
    assert_quiet rondo("publish", "news", "--control-url", control_url(server), "-T", TOKEN, "--", "-5")
    assert feed.hears?("-5")
    { %w[publish] => /the channel is missing/, %w[publish news] => /the message is missing; - reads it from standard input/,
      %w[publish news a b -S state] => /too many arguments: b/, %w[publish news a -S nowhere] => /cannot read the state file nowhere/,
      ["publish", "", "a", "-S", "state"] => /says 400: channel of the message must have 1 to 1024 bytes/,
      ["publish", "news", "\xff", "-S", "state"] => /the message is not valid UTF-8/,
      ["publish", "news", "a", "--control-url", control_url(server), "-T", "wrong"] => /says 403: /,
      %w[publish news a --control-url tcp://127.0.0.1:1] => /no control server at tcp:..127.0.0.1:1: /,
      %w[publish news a --control-url foo] => /foo is not the address of a control server/,
      %w[publish news a -C -] => /it is not known which server is meant/,
      %w[publish --nonsense] => /invalid option --nonsense/ }.each { |words, why| assert_complaint 1, why, rondo(*words) }
    assert_includes rondo("publish", "--help").out, "Usage: rondo publish CHANNEL MESSAGE"
    folder = ["/bin/sh", "-c", 'exec "$@" < .', "sh"]
    assert_complaint 1, /\Arondo: cannot read standard input: Is a directory\n\z/, run_command(*folder, *RONDO, "publish", "news", "-", "-S", "state")
    write "long", "x" * (MEBI + 1)
    assert_complaint 1, /the message is longer than 1048576 bytes/, run_command(*RONDO, "publish", "news", "-", "-S", "state", stdin: "long")
  end

  def test_the_publisher_and_a_unix_socket
    server = controlled("-w", "2", uri: "unix://#{@folder}/control.sock")
    feed = feeds(server, "news") { |text| publisher(server).publish("news", text) }
    publisher(server).publish(:news, { by: "the publisher" })
    assert feed.hears?('{"by":"the publisher"}')
    assert_equal 1000, publisher(server).publish_all((1..1000).map { |number| ["news", number] })
    assert feed.hears?("1000\n")
    error = assert_raises(Rondo::Publisher::Error) { Rondo::Publisher.new(control_url(server), token: "wrong").publish("a", "b") }
    assert_equal 403, error.status
    error = assert_raises(Rondo::Publisher::Error) { publisher(server).publish("news", "x" * MEBI) }
    assert_equal 413, error.status
  end

  private

  def post(server, body, token: TOKEN, query: "")
    http = Net::HTTP.new("127.0.0.1", control_port(server))
    http.read_timeout = PATIENCE
    headers = { "content-type" => "application/json" }
    headers["authorization"] = "Bearer #{token}" if token
    answer = http.post("/publish#{query}", body, headers)
    [answer.code.to_i, answer.body]
  end

  def publisher(server)
    Rondo::Publisher.new(control_url(server), token: TOKEN, timeout: PATIENCE)
  end

  def open_stream(server, channel, last: nil)
    OpenStream.new(server.port, "/#{channel}", last: last).tap { |stream| @streams << stream }
  end

  # A stream that the hub knows of: messages of other processes reach it.
  def feeds(server, channel)
    stream = open_stream(server, channel)
    eventually("it is subscribed") do
      block_given? ? yield("probe") : post(server, JSON.generate(channel: channel, data: "probe"))
      stream.heard?("probe")
    end
    stream
  end

  # As much as the server takes.
  def send_most(socket, bytes)
    until bytes.empty?
      sent = socket.write_nonblock(bytes, exception: false)
      return if sent == :wait_writable && !socket.wait_writable(0.2)

      bytes = bytes.byteslice(sent..) unless sent == :wait_writable
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil # it was refused
  end

  def first_line(socket)
    socket.gets.to_s
  rescue Errno::ECONNRESET
    ""
  end

  def assert_quiet(result)
    assert_equal [0, "", ""], [result.code, result.out, result.err]
  end
end
