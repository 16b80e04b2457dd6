# frozen_string_literal: true

# Outgoing WebSockets: their handshake, their messages, and answers that are not the one that was asked for. The peer is
# the gem websocket-driver, or bytes of the test.
# SPDX-License-Identifier: MIT

require "test_helper"
require "base64"
require "fileutils"
require "tmpdir"
require "websocket/driver"
require "support/certificates"
require "support/outgoing_case"
require "support/websocket_frames"

class CallingTest < OutgoingCase
  # Notes what happens.
  class Talk
    attr_reader :notes, :client

    def initialize(first = nil)
      @first = first
      @notes = Queue.new
    end

    def on_open(client)
      @client = client
      @notes << [:open, client.protocol, client.env]
      client.write(@first) if @first
    end

    def on_message(_client, data)
      @notes << [:message, data, data.encoding]
    end

    def on_close(client)
      @notes << (client ? [:close, client.close_code, client.close_reason] : [:close, nil])
    end
  end

  # The other end, by websocket-driver.
  class Driver
    attr_reader :heard, :driver

    def initialize(socket, **options)
      @socket = socket
      @heard = Queue.new
      @driver = WebSocket::Driver.server(self, options)
      @driver.on(:connect) { @driver.start }
      @driver.on(:message) { |event| @heard << event.data }
      @driver.on(:close) { |event| @heard << [:close, event.code, event.reason] }
      @driver.on(:ping) { |event| @heard << [:ping, event.data] }
      yield @driver if block_given?
      @thread = Thread.new { run }
    end

    def write(bytes)
      @socket.write(bytes)
    end

    def run
      loop { @driver.parse(@socket.readpartial(65_536)) }
    rescue SystemCallError, IOError
      @heard << :end
    end
  end

  # A peer that does not close first is waited for.
  def serve(*arguments, linger_timeout_ms: 50, **settings, &block)
    super
  end

  def ws(path = "/chat?room=1")
    peer.sub("tcp:", "ws:") + path
  end

  def talk(url = ws, first: nil, **options)
    @talk = Talk.new(first)
    connect(url, @talk, **options)
    accept
  end

  def heard(driver)
    within { driver.heard.pop }
  end

  # @return [Driver] whose client is open
  def met
    serve
    driver = Driver.new(talk(first: "x"))
    assert_equal "x", heard(driver)
    assert_equal :open, note(@talk).first
    driver
  end

  # The answer that belongs to the request.
  def agree(socket)
    socket.write("#{format(GOOD, key: WebsocketFrames.accept_key(fields(socket)["sec-websocket-key"]))}\r\n")
  end

  # ---- with websocket-driver ----

  def test_messages_in_both_directions
    serve
    driver = Driver.new(talk(first: "hëllo")) { |one| one.on(:message) { |event| one.text("echo #{event.data}") } }
    assert_equal "hëllo", heard(driver)
    assert_equal [:open, :websocket, nil], note(@talk)
    assert_equal [:message, "echo hëllo", Encoding::UTF_8], note(@talk)
    ["", "x" * 125, "x" * 126, "x" * 65_535, "x" * 65_536, "x" * 200_000].each do |text|
      @talk.client.write(text)
      assert_equal text, heard(driver)
      assert_equal "echo #{text}", note(@talk)[1]
    end
    assert_equal 1, @server.stats[:upgraded]
  end

  def test_binary
    serve
    driver = Driver.new(talk(first: "\xff\0".b))
    assert_equal [255, 0], heard(driver).then { |data| data.respond_to?(:bytes) ? data.bytes : data }
    driver.driver.binary([1, 2, 255])
    note(@talk)
    assert_equal [:message, "\x01\x02\xff".b, Encoding::BINARY], note(@talk)
  end

  def test_the_request
    serve
    driver = Driver.new(talk(headers: { "Origin" => "https://a.example", x_token: "secret" }, protocols: %w[one two],
                             first: "x"), protocols: %w[two three])
    assert_equal "x", heard(driver)
    env = driver.driver.env
    assert_equal "/chat?room=1", env["REQUEST_URI"] || "#{env["PATH_INFO"]}?#{env["QUERY_STRING"]}"
    assert_equal "https://a.example", env["HTTP_ORIGIN"]
    assert_equal "127.0.0.1:#{@peer.addr[1]}", env["HTTP_HOST"]
    assert_equal "two", driver.driver.protocol
  end

  def test_the_sub_protocol
    serve
    names = Queue.new
    handler = Class.new(Talk) do
      define_method(:on_message) { |client, _data| names << client.subprotocol }
      define_method(:on_close) { |client| (names << client.subprotocol) && super(client) }
    end
    { %w[one two three] => "two", %w[two] => "two", %w[three] => nil, [] => nil }.each do |offered, chosen|
      connect(ws, @talk = handler.new("x"), protocols: offered)
      driver = Driver.new(accept, protocols: %w[two four])
      assert_equal "x", heard(driver)
      driver.driver.text("word")
      driver.driver.close
      assert_equal [chosen, chosen], within { Array.new(2) { names.pop } }
      within { Thread.pass until @talk.client.subprotocol.nil? }
    end
  end

  # ---- peers that do not read ----

  # A peer that does not read yet; its client subscribes to "flood".
  def stalled(**settings)
    serve(max_pending_bytes: 100_000, deflate: 0, **settings)
    handler = Class.new(Talk) { define_method(:on_open) { |client| client.subscribe("flood") && super(client) } }
    connect(ws.tap { @peer.setsockopt(:SOCKET, :RCVBUF, 65_536) }, @talk = handler.new)
    socket = accept
    agree(socket)
    note(@talk)
    2000.times { |number| Rondo.publish("flood", number.to_s.ljust(8000)) }
    socket
  end

  # @return [String] of a frame of a client
  def payload(socket)
    within do
      length = socket.read(2).getbyte(1) & 0x7f
      length = socket.read(2).unpack1("n") if length == 126
      mask, bytes = socket.read(4 + length).unpack("a4a*")
      WebsocketFrames.masked(bytes.byteslice(0, 8), mask)
    end
  end

  def heard_of_flood(**settings)
    socket = stalled(**settings)
    heard = []
    until heard.last == "end"
      Rondo.publish("flood", "end") # until there is room for it
      heard << payload(socket)
    end
    heard = heard.reject { |text| text == "end" }.map(&:to_i)
    assert_equal heard.sort.uniq, heard
    assert_operator heard.size, :<, 2000
    assert_operator @server.stats[:messages_dropped], :>=, 2000 - heard.size
    heard
  end

  def test_the_oldest_messages_are_dropped
    assert_includes heard_of_flood(slow_client: :drop_oldest), 1999
  end

  def test_the_newest_messages_are_dropped
    assert_equal 0, heard_of_flood(slow_client: :drop_newest).first
  end

  def test_a_peer_that_does_not_read_is_closed
    stalled
    assert_equal [:close, 1013, "too slow"], note(@talk)
  end

  def test_pings
    driver = met
    answered = Queue.new
    driver.driver.ping("there?") { answered << true }
    assert within { answered.pop }
    @talk.client.timeout = 0.05
    assert_equal [:ping, ""], heard(driver)
  end

  def test_our_close
    driver = met
    @talk.client.close(4000, "enough")
    assert_equal [:close, 4000, "enough"], heard(driver)
    assert_equal [:close, 4000, "enough"], note(@talk)
  end

  def test_the_peers_close
    met.driver.close("bye", 4001)
    assert_equal [:close, 4001, "bye"], note(@talk)
  end

  def test_a_stop
    driver = met
    @server.stop
    assert_equal [:close, 1001, "going away"], heard(driver)
    @thread.join
  end

  def test_what_is_published
    serve
    handler = Class.new(Talk) { define_method(:on_open) { |client| super(client) && client.subscribe("news") } }
    @talk = handler.new("ready")
    connect(ws, @talk)
    driver = Driver.new(accept)
    assert_equal "ready", heard(driver)
    within { Thread.pass until Rondo.publish("news", "word") && !driver.heard.empty? }
    assert_equal "word", heard(driver)
  end

  # ---- with this server ----

  def echo_app
    handler = Class.new { def on_message(client, data) = client.write(data) }
    lambda do |env|
      env["rack.upgrade"] = handler.new if env["rack.upgrade?"]
      [200, {}, []]
    end
  end

  # Deflated in both directions, if it is agreed.
  def test_this_server
    [1, 0].each do |deflate|
      serve(echo_app, deflate: deflate)
      @talk = Talk.new("long " * 10_000)
      connect(@http.sub("http:", "ws:"), @talk)
      assert_equal [:open, :websocket, nil], note(@talk)
      assert_equal "long " * 10_000, note(@talk)[1]
      stop
    end
  end

  def test_with_tls
    skip "OpenSSL is missing in this build" unless Rondo::TLS.library
    Dir.mktmpdir do |folder|
      certificates = Certificates.new(folder)
      url = nil
      serve(echo_app) { |server| url = server.listen("ssl://127.0.0.1:0?#{certificates.pair("peer").query}") }
      @talk = Talk.new("word")
      connect(url.sub("https:", "wss:"), @talk, ca: certificates.authority)
      assert_equal [:open, :websocket, nil], note(@talk)
      assert_equal "word", note(@talk)[1]
    end
  end

  # ---- answers ----

  # @return [Hash{String => String}] the fields of the request, names in lower case
  def fields(socket)
    within do
      lines = []
      lines << socket.gets until lines.last == "\r\n"
      lines[1..-2].to_h { |line| line.chomp.split(": ", 2) }.transform_keys(&:downcase)
    end
  end

  GOOD = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n" \
         "Sec-WebSocket-Accept: %<key>s\r\n"

  ANSWERS = {
    "HTTP/1.1 302 Found\r\nLocation: /\r\n" => /is 302\z/, "HTTP/1.1 200 OK\r\n" => /is 200\z/,
    "HTTP/1.1 404\r\n" => /is 404\z/, "HTTP/1.0 101 OK\r\n" => /malformed\z/, "SSH-2.0-x\r\n" => /malformed\z/,
    GOOD.sub("%<key>s", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=") => /does not belong to our key\z/,
    GOOD.sub(/Sec-.*/, "") => /malformed|does not belong/, GOOD.sub("Upgrade: WebSocket\r\n", "") => /no upgrade/,
    GOOD.sub("keep-alive, Upgrade", "keep-alive") => /no upgrade/,
    "#{GOOD}Sec-WebSocket-Protocol: other\r\n" => /sub-protocol that was not offered\z/,
    "#{GOOD}Sec-WebSocket-Extensions: x-other\r\n" => /extension that was not offered\z/,
    "#{GOOD}Sec-WebSocket-Extensions: permessage-deflate\r\n" => /extension that was not offered\z/,
    "#{GOOD}X-Folded: a\r\n b\r\n" => /malformed\z/, "#{GOOD}X: #{"a" * 20_000}\r\n" => /too long\z/
  }.freeze

  def test_answers
    serve
    ANSWERS.each do |answer, pattern|
      socket = talk(protocols: ["one"])
      key = fields(socket)["sec-websocket-key"]
      socket.write("#{format(answer.gsub(/%(?!<)/, "%%"), key: WebsocketFrames.accept_key(key))}\r\n")
      assert_failed(pattern, @talk)
    end
  end

  # Byte by byte, with a frame behind it.
  def test_an_answer_in_pieces
    serve
    socket = talk
    key = fields(socket)["sec-websocket-key"]
    assert_equal 16, Base64.strict_decode64(key).bytesize
    "#{format(GOOD, key: WebsocketFrames.accept_key(key))}\r\n\x81\x02hi".each_char { |byte| socket.write(byte) }
    assert_equal [:open, :websocket, nil], note(@talk)
    assert_equal [:message, "hi", Encoding::UTF_8], note(@talk)
  end

  def test_a_masked_frame_of_the_peer
    serve
    socket = talk
    agree(socket)
    socket.write("\x81\x82\0\0\0\0hi".b)
    assert_equal :open, note(@talk).first
    assert_equal [:close, 1002, "server frame is masked"], note(@talk)
    frame = within { socket.read }.b
    assert_equal 0x88, frame.getbyte(0)
    assert_equal 0x80, frame.getbyte(1) & 0x80
  end

  # Each frame has a mask of its own.
  def test_masks
    serve
    socket = talk
    agree(socket)
    note(@talk)
    3.times { @talk.client.write("abcd") }
    frames = Array.new(3) { within { socket.read(10) } }
    masks = frames.map { |frame| frame.byteslice(2, 4) }
    assert_equal 3, masks.uniq.size
    assert_equal ["abcd"], frames.zip(masks).map { |frame, mask| frame.bytes[6..].zip(mask.bytes).map { |a, b| a ^ b }.pack("C*") }.uniq
  end

  def test_a_peer_that_does_not_answer
    serve
    talk(timeout: 0.2)
    assert_failed(/: the handshake has not ended in time\z/, @talk)
  end

  def test_a_peer_that_leaves
    serve
    talk.close
    assert_failed(/: (the peer has ended the handshake|the handshake was cut)\z/, @talk)
  end

  # ---- arguments ----

  URLS = ["ws://", "ws:///path", "ws://a:0/", "ws://a/b#c", "ws://user@a/", "ws://a/\u00e9", "ws://a /"].freeze

  def test_urls
    serve
    URLS.each { |url| assert_raises(Rondo::AddressError, url) { @server.connect(url, handler: @echo) } }
  end

  OPTIONS = {
    { headers: [] } => /must be a Hash/, { headers: { "a b" => "c" } } => /not the name/,
    { headers: { "Host" => "c" } } => /handshake's own/, { headers: { "Sec-WebSocket-Key" => "c" } } => /own/,
    { headers: { "a" => "b\r\nc: d" } } => /control character/, { headers: { "a" => "b" * 20_000 } } => /more than/,
    { protocols: "one" } => /must be an Array/, { protocols: ["a b"] } => /must be an Array/,
    { protocols: %w[a a] } => /must be an Array/, { verify: false } => /is an option of tls: and wss:/
  }.freeze

  def test_options
    serve
    OPTIONS.each do |options, pattern|
      error = assert_raises(ArgumentError) { @server.connect("ws://localhost:1", handler: @echo, **options) }
      assert_match(pattern, error.message)
    end
    error = assert_raises(ArgumentError) { @server.connect("tcp://localhost:1", handler: @echo, headers: {}) }
    assert_equal "headers is an option of ws: and wss:, not of tcp://localhost:1", error.message
  end
end
