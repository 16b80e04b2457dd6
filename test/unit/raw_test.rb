# frozen_string_literal: true

# Raw connections: Rondo::Server#listen_raw, #attach_fd and env["upgrade.tcp"] on real sockets of a server in this
# process.
# SPDX-License-Identifier: MIT

require "support/own_server_case"
require "io/wait"
require "openssl"
require "tmpdir"
require "support/certificates"

class RawTest < OwnServerCase
  # Notes what happens, and answers words.
  class Echo
    attr_reader :notes, :client, :peers

    def initialize
      @notes = Queue.new
      @peers = Queue.new
    end

    def on_open(client)
      @client = client
      @peers << client.peer
      @notes << [:open, client.protocol, client.env.class]
      client.write("hello\n")
    end

    def on_message(client, data)
      @notes << [:message, data.encoding, data.frozen?]
      client.write(data)
    end

    def on_shutdown(client)
      client.write("shutdown\n")
    end

    def on_close(client)
      @peers << client.peer
      @notes << [:close, client.close_code, client.write("late")]
    end
  end

  def serve_raw(maker = nil, **settings, &block)
    serve(**settings) { |server| @raw = server.listen_raw("tcp://127.0.0.1:0", maker, &block) }
  end

  def dial(url = @raw)
    socket = TCPSocket.new("127.0.0.1", url[/\d+\z/].to_i)
    @sockets << socket
    socket
  end

  def rest(socket)
    within { socket.read }
  end

  def client_of(echo)
    within { Thread.pass until echo.client }
    echo.client
  end

  # A reset is an end, too.
  def assert_closed(socket)
    assert_equal "", rest(socket)
  rescue Errno::ECONNRESET
    pass
  end

  def await_line(pattern)
    within { nil until @log.lines.pop[1].match?(pattern) }
  end

  # ---- bytes ----

  def test_echo
    echo = Echo.new
    serve_raw { echo }
    socket = dial
    assert_equal "hello\n", line(socket)
    socket.write("\xff\0word\n".b)
    assert_equal "\xff\0word\n".b, line(socket).b
    socket.close_write
    assert_equal "", rest(socket)
    assert_equal [:open, :raw, NilClass], echo.notes.pop
    assert_equal [:message, Encoding::BINARY, false], echo.notes.pop
    assert_equal [:close, 1005, false], echo.notes.pop
  end

  def test_what_is_said_before_the_end_is_answered
    serve_raw { Echo.new }
    socket = dial
    socket.write("a" * 300_000)
    socket.close_write
    assert_equal "hello\n#{"a" * 300_000}", rest(socket)
  end

  def test_messages_have_at_most_64_kib
    sizes = Queue.new
    handler = Class.new { define_method(:on_message) { |client, data| (sizes << data.bytesize) && client.write("x") } }
    serve_raw(handler.new)
    socket = dial
    socket.write("a" * 1_000_000)
    socket.close_write
    rest(socket)
    all = Array.new(sizes.size) { sizes.pop }
    assert_equal 1_000_000, all.sum
    assert_operator all.max, :<=, 65_536
  end

  # A handler may get a callback late, by a module or as a singleton method.
  def test_a_callback_that_comes_later
    late = Module.new { def on_message(client, data) = client.write(data) }
    serve_raw { Class.new { define_method(:on_open) { |_| extend(late) } }.new }
    socket = dial
    socket.write("word\n")
    assert_equal "word\n", line(socket)
  end

  # ---- the client ----

  def test_strings_of_any_encoding_are_bytes
    echo = Echo.new
    serve_raw { echo }
    socket = dial
    line(socket)
    client = client_of(echo)
    assert client.write("broken \xff\n")
    assert client.write("latin \xe9\n".dup.force_encoding(Encoding::ISO_8859_1))
    assert client.write({ "a" => 1 })
    assert client.event("\n", event: "left out")
    assert_raises(TypeError) { client.write(nil) }
    assert_equal ["broken \xff\n".b, "latin \xe9\n".b, "{\"a\":1}\n".b], Array.new(3) { line(socket).b }
    assert_operator client.pending, :>=, 0
    client.close(4001)
    assert_equal "", rest(socket)
    socket.close
    assert_equal :open, echo.notes.pop.first
    assert_equal [:close, 4001, false], within { echo.notes.pop }
    assert_equal(-1, client.pending)
  end

  def test_channels_send_the_bytes_as_they_are
    serve_raw(Class.new { def on_open(client) = client.subscribe(:news) && client.write("in\n") }.new)
    sockets = Array.new(3) { dial }
    sockets.each { |socket| assert_equal "in\n", line(socket) }
    Rondo.publish(:news, "\xffnews\n".b)
    sockets.each { |socket| assert_equal "\xffnews\n".b, line(socket).b }
  end

  def test_a_handler_takes_over
    second = Class.new do
      def on_open(client) = client.write("second\n")
      def on_message(client, data) = client.write("2#{data}")
    end
    first = Class.new do
      define_method(:on_message) { |client, _data| client.handler = second.new }
      def on_close(client) = client.write("bye\n")
    end
    serve_raw { first.new }
    socket = dial
    socket.write("x\n")
    assert_equal %W[bye\n second\n], [line(socket), line(socket)]
    socket.write("y\n")
    assert_equal "2y\n", line(socket)
  end

  def test_ping_comes_after_silence
    handler = Class.new do
      def on_open(client) = client.timeout = 0.05
      def ping(client) = client.write("there?\n")
    end
    serve_raw { handler.new }
    socket = dial
    assert_equal "there?\n", line(socket)
    assert_equal "there?\n", line(socket)
  end

  def test_drained
    drained = Queue.new
    handler = Class.new do
      define_method(:on_open) { |client| client.write("x" * 1_000_000) }
      define_method(:on_drained) { |client| drained << client.pending }
    end
    serve_raw { handler.new }
    socket = dial
    within { socket.read(1_000_000) }
    assert_equal 0, within { drained.pop }
  end

  # ---- handlers that are none ----

  def test_nil_and_false_close
    [nil, false].each do |handler|
      serve_raw { handler }
      assert_closed(dial)
      stop
    end
  end

  # Like a WebSocket's: the connection stays open, and what comes is dropped.
  def test_a_handler_without_callbacks
    [true, Object.new, Module.new].each do |handler|
      serve_raw { handler }
      socket = dial
      socket.write("x" * 200_000)
      socket.close_write
      assert_equal "", rest(socket)
      stop
    end
  end

  def test_a_class_is_a_handler
    klass = Class.new { def self.on_open(client) = client.write("class\n") }
    serve_raw { klass }
    assert_equal "class\n", line(dial)
  end

  def test_a_maker_that_fails
    { -> { raise "no handler today" } => /no handler today/, -> { throw :up } => /uncaught throw/ }.each do |maker, said|
      serve_raw(maker)
      assert_closed(dial)
      await_line(said)
      stop
    end
  end

  def test_callbacks_that_fail_close_their_connection_only
    handler = Class.new do
      def on_open(client) = client.write("in\n")
      def on_message(_client, data) = data == "throw" ? throw(:up) : raise("bad day")
    end
    serve_raw { handler.new }
    good, *bad = Array.new(3) { dial }
    [good, *bad].each { |socket| line(socket) }
    bad.first.write("throw")
    assert_closed(bad.first)
    await_line(/uncaught throw/)
    bad.last.write("raise")
    assert_closed(bad.last)
    await_line(/bad day/)
    refute good.wait_readable(0)
  end

  def test_makers_that_are_none
    server = Rondo::Server.new(->(_env) { [200, {}, []] })
    assert_raises(ArgumentError) { server.listen_raw("tcp://127.0.0.1:0") }
    assert_raises(ArgumentError) { server.listen_raw("tcp://127.0.0.1:0", Object.new) { nil } }
    error = assert_raises(Rondo::AddressError) { server.listen_raw("http://x") { nil } }
    assert_match(/expected tcp:/, error.message)
  end

  # ---- peers ----

  def test_a_peer_that_never_reads
    echo = Echo.new
    serve_raw(max_pending_bytes: 65_536) { echo }
    socket = dial
    client = client_of(echo)
    within { nil while client.write("x" * 60_000) }
    socket.close
    assert_includes within { Array.new(2) { echo.notes.pop } }, [:close, 1013, false]
  end

  def test_a_peer_that_resets
    echo = Echo.new
    serve_raw { echo }
    socket = dial
    line(socket)
    socket.setsockopt(Socket::Option.linger(true, 0))
    socket.close
    assert_equal [:open, :raw, NilClass], echo.notes.pop
    assert_equal [:close, 1006, false], within { echo.notes.pop }
  end

  def test_shutdown
    echo = Echo.new
    serve_raw { echo }
    socket = dial
    line(socket)
    @server.stop
    assert_equal "shutdown\n", rest(socket)
    @thread.join
    echo.notes.pop
    assert_equal [:close, 1001, false], echo.notes.pop
  end

  def test_many_come_and_break
    opened = Queue.new
    handler = Class.new { define_method(:on_close) { |client| opened << client } }
    serve_raw { handler.new }
    50.times do
      socket = dial
      socket.setsockopt(Socket::Option.linger(true, 0))
      socket.close
    end
    within { Thread.pass until @server.stats[:accepted] >= 50 && @server.stats[:upgraded].zero? }
    assert_equal 0, @server.stats[:connections]
  end

  def test_at_the_limit_others_wait
    serve_raw(max_connections: 2) { Echo.new }
    first, second, third = Array.new(3) { dial }
    assert_equal %W[hello\n hello\n], [line(first), line(second)]
    refute third.wait_readable(0)
    assert_raises(ArgumentError) { attach(Echo.new) }
    first.close
    assert_equal "hello\n", line(third)
  end

  # ---- other listeners ----

  def test_addresses
    serve_raw { Echo.new }
    assert_match(%r{\Atcp://127\.0\.0\.1:\d+\z}, @raw)
    assert_equal [@http, "raw #{@raw}"], @server.addresses
    assert_equal "hello\n", line(dial)
    plain = dial(@http)
    plain.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert_match(/plain\z/, rest(plain))
  end

  # In on_open and in on_close.
  def assert_peer(peer, echo)
    assert_equal [peer, peer], [echo.peers, echo.peers].map { |peers| within { peers.pop } }
  end

  def local(socket)
    socket.local_address.ip_unpack
  end

  def test_peer
    echo = Echo.new
    serve_raw { echo }
    socket = dial
    assert_equal "hello\n", line(socket)
    assert_equal ["127.0.0.1", local(socket)[1]], echo.client.peer
    socket.close_write
    assert_equal "", rest(socket)
    assert_peer(local(socket), echo)
    assert_equal local(socket), echo.client.peer
  end

  def test_peer_of_ipv6
    echo = Echo.new
    serve { |server| @raw = server.listen_raw("tcp://[::1]:0") { echo } }
    socket = TCPSocket.new("::1", @raw[/\d+\z/].to_i)
    @sockets << socket
    assert_equal "hello\n", line(socket)
    assert_equal ["::1", local(socket)[1]], echo.client.peer
  rescue Rondo::AddressError, Errno::EADDRNOTAVAIL
    skip "an IPv6 loopback is missing"
  end

  def test_unix
    path = "@rondo-raw-#{Process.pid}"
    echo = Echo.new
    serve { |server| assert_equal "unix://#{path}", server.listen_raw("unix://#{path}") { echo } }
    socket = UNIXSocket.new("\0#{path[1..]}")
    @sockets << socket
    socket.write("word")
    socket.close_write
    assert_equal "hello\nword", rest(socket)
    assert_peer(nil, echo)
  end

  # There may be no other listener with TLS.
  def test_handshakes_are_counted
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("raw")
      echo = Echo.new
      serve { |server| @raw = server.listen_raw("ssl://127.0.0.1:0?#{pair.query}") { echo } }
      secure = OpenSSL::SSL::SSLSocket.new(socket = dial)
      within { secure.connect }
      assert_equal "hello\n", line(secure)
      assert_equal local(socket), echo.client.peer
      within { Thread.pass until @server.stats.values_at(:tls_full, :tls_connections) == [1, 1] }
    end
  end

  # @return [OpenSSL::SSL::SSLSocket] that offers these
  def secure_dial(*protocols)
    context = OpenSSL::SSL::SSLContext.new
    context.alpn_protocols = protocols unless protocols.empty?
    OpenSSL::SSL::SSLSocket.new(dial, context).tap { |secure| within { secure.connect } }
  end

  def test_what_the_handshake_agrees_upon
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("raw")
      seen = Queue.new
      echo = Class.new(Echo) { define_method(:on_open) { |client| super(client) && seen << client.alpn } }
      serve { |server| @raw = server.listen_raw("ssl://127.0.0.1:0?#{pair.query}&alpn=own/2,own/1") { echo.new } }
      { %w[own/1 own/2] => "own/2", %w[h2 own/1] => "own/1", [] => nil }.each do |offered, agreed|
        secure = secure_dial(*offered)
        assert_equal [agreed, agreed], [within { seen.pop }, secure.alpn_protocol]
      end
      assert_match(/no application protocol/, assert_raises(OpenSSL::SSL::SSLError) { secure_dial("h2") }.message)
      assert_raises(Rondo::AddressError) { @server.listen("ssl://127.0.0.1:0?#{pair.query}&alpn=own") }
        .then { |error| assert_match(/alpn is for listen_raw/, error.message) }
    end
  end

  def test_nothing_is_agreed_upon_without_tls
    seen = Queue.new
    serve_raw { Class.new { define_method(:on_open) { |client| seen << client.alpn } }.new }
    dial
    assert_nil within { seen.pop }
  end

  def test_a_proxy_header_comes_first
    echo = Echo.new
    serve_raw(proxy_protocol_from: ["127.0.0.1"]) { echo }
    socket = dial
    socket.write("PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nword\n")
    assert_equal %W[hello\n word\n], [line(socket), line(socket)]
    assert_equal ["192.0.2.1", 1], echo.client.peer
    stranger = dial
    stranger.write("no header\r\n")
    assert_closed(stranger)
    await_line(/PROXY/)
  end

  # ---- descriptors of the application ----

  def attach(handler)
    ours, theirs = UNIXSocket.pair
    @sockets.push(ours, theirs)
    assert_same handler, @server.attach_fd(theirs, handler)
    ours
  end

  def test_attached
    serve_raw { Echo.new }
    ours = attach(Echo.new)
    @sockets.pop.close # the server has a duplicate
    assert_equal "hello\n", line(ours)
    ours.write("word\n")
    assert_equal "word\n", line(ours)
    number = TCPSocket.new("127.0.0.1", (listener = TCPServer.new("127.0.0.1", 0)).addr[1])
    @sockets.push(number, peer = listener.accept, listener)
    @server.attach_fd(number.fileno, echo = Echo.new)
    assert_equal "hello\n", line(peer)
    assert_equal local(peer), echo.client.peer
  end

  def test_attached_before_the_server_runs
    serve { |server| (@server = server) && attach(Echo.new) }
    assert_equal "hello\n", line(@sockets.first)
  end

  def test_attached_by_the_application
    error = assert_raises(Rondo::Error) { Rondo.attach_fd(0, Echo.new) }
    assert_equal "no server runs in this process", error.message
    ours, theirs = UNIXSocket.pair
    @sockets.push(ours, theirs)
    serve(->(_env) { Rondo.attach_fd(theirs, Echo.new) && [200, {}, []] }) { nil }
    dial(@http).write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "hello\n", line(ours)
  end

  def test_what_cannot_be_attached
    serve_raw { Echo.new }
    closed, = IO.pipe
    number = closed.fileno
    reasons = { File.open(__FILE__) => /not a stream socket/, TCPServer.new("127.0.0.1", 0) => /a listening socket/,
                Socket.new(:INET, :STREAM) => /not connected/, UDPSocket.new => /not a stream socket/ }
    reasons.each do |io, reason|
      @sockets << io
      assert_match(reason, assert_raises(ArgumentError) { @server.attach_fd(io, Echo.new) }.message)
    end
    closed.close
    assert_raises(IOError) { @server.attach_fd(closed, Echo.new) }
    assert_match(/it is closed/, assert_raises(ArgumentError) { @server.attach_fd(number, Echo.new) }.message)
    assert_raises(ArgumentError) { @server.attach_fd(-1, Echo.new) }
    assert_raises(ArgumentError) { @server.attach_fd("7", Echo.new) }
    assert_raises(ArgumentError) { @server.attach_fd(0, nil) }
    assert_equal 0, @server.stats[:connections]
  end

  # ---- requests that become raw connections ----

  UPGRADE = "GET /raw HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: word\r\n\r\n"

  def serve_upgrade(handler, response = [101, { "connection" => "upgrade", "upgrade" => "word", "x-a" => "b" }, []])
    serve(->(env) { (env["upgrade.tcp"] = handler) && response }) { nil }
    dial(@http)
  end

  def head(socket)
    lines = []
    lines << line(socket) until lines.last == "\r\n"
    lines
  end

  def test_a_request_becomes_a_raw_connection
    echo = Echo.new
    socket = serve_upgrade(echo)
    socket.write("#{UPGRADE}first\n")
    assert_equal ["HTTP/1.1 101 Switching Protocols\r\n", "connection: upgrade\r\n", "upgrade: word\r\n", "x-a: b\r\n",
                  "\r\n"], head(socket)
    assert_equal %W[hello\n first\n], [line(socket), line(socket)]
    assert_equal [:open, :raw, Hash], echo.notes.pop
    assert_equal "/raw", echo.client.env["PATH_INFO"]
    assert_equal local(socket), echo.client.peer
    echo.client.handler = Echo.new
    assert_equal "latehello\n", line(socket)
  end

  def test_other_statuses
    { 200 => "HTTP/1.1 200 OK\r\n", 0 => "HTTP/1.1 101 Switching Protocols\r\n" }.each do |status, first|
      socket = serve_upgrade(Echo.new, [status, {}, []])
      socket.write(UPGRADE)
      assert_equal first, head(socket).first
      assert_equal "hello\n", line(socket)
      stop
    end
  end

  def test_a_refusal_stays_an_answer
    socket = serve_upgrade(Echo.new, [403, {}, ["no"]])
    socket.write(UPGRADE.sub("Upgrade\r\n", "close\r\n"))
    answer = rest(socket)
    assert_match(%r{\AHTTP/1\.1 403 }, answer)
    assert_match(/no\z/, answer)
  end

  def test_an_informational_status_is_no_answer
    socket = serve_upgrade(Echo.new, [103, {}, []])
    socket.write(UPGRADE)
    assert_match(%r{\AHTTP/1\.1 500 }, line(socket))
  end

  def test_a_request_whose_body_is_on_its_way
    socket = serve_upgrade(Echo.new)
    socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
    assert_match(%r{\AHTTP/1\.1 500 }, line(socket))
    await_line(/upgrade\.tcp is set for a request whose connection cannot become a raw one/)
  end
end
