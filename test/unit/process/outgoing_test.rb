# frozen_string_literal: true

# Connections that the application asks for: Rondo.connect and Rondo::Server#connect, on real sockets of a server in
# this process.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require "support/outgoing_case"

class OutgoingTest < OutgoingCase
  # ---- connections ----

  def test_tcp
    serve
    connect(peer)
    socket = accept
    assert_equal "hello\n", line(socket)
    assert_equal [:open, :raw, nil], note
    socket.write("words\n")
    assert_equal "words\n", line(socket)
    assert_equal 1, @server.stats[:upgraded]
    assert socket.remote_address.ip?
    socket.close
    assert_equal [:close, 1005], note
    within { Thread.pass until @server.stats[:connections].zero? }
    assert_empty @log.lines
  end

  def test_a_name
    serve
    connect(peer.sub("127.0.0.1", "localhost"))
    assert_equal "hello\n", line(accept)
  end

  def test_ipv6
    serve
    connect(peer("::1"))
    assert_equal "hello\n", line(accept)
  rescue Errno::EADDRNOTAVAIL
    skip "an IPv6 loopback is missing"
  end

  def test_unix
    serve
    Dir.mktmpdir do |folder|
      listener = UNIXServer.new("#{folder}/peer.sock")
      @sockets << listener
      connect("unix://#{folder}/peer.sock")
      assert_equal "hello\n", line(accept(listener))
      abstract = UNIXServer.new("\0rondo-outgoing-#{Process.pid}")
      @sockets << abstract
      connect("unix://@rondo-outgoing-#{Process.pid}")
      assert_equal "hello\n", line(accept(abstract))
    end
  end

  # A raw listener of this very server.
  def test_to_itself
    there = Echo.new
    raw = nil
    serve { |server| raw = server.listen_raw("tcp://127.0.0.1:0", there) }
    heard = Queue.new
    ours = Class.new { define_method(:on_message) { |_client, data| heard << data } }
    connect(raw, ours.new)
    assert_equal "hello\n", within { heard.pop }
    assert_equal [:open, :raw, nil], note(there)
  end

  # Whichever thread polls, and whether or not the leader is away meanwhile.
  def test_many
    there = Class.new { def on_open(client) = client.close }
    raw = nil
    serve { |server| raw = server.listen_raw("tcp://127.0.0.1:0") { there.new } }
    ended = Queue.new
    ours = Class.new { define_method(:on_close) { |client| ended << client.nil? } }
    200.times { connect(raw, ours.new) }
    assert_equal [false], within { Array.new(200) { ended.pop } }.uniq
    assert_empty @log.lines
  end

  def test_from_the_application
    url = peer
    serve(->(_env) { Rondo.connect(url, handler: @echo) && [200, {}, []] })
    socket = TCPSocket.new("127.0.0.1", @http[/\d+\z/].to_i)
    @sockets << socket
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "hello\n", line(accept)
  end

  def test_before_a_server_is_there
    assert_same @echo, Rondo.connect(peer, handler: @echo)
    serve
    assert_equal "hello\n", line(accept)
    stop
    assert_equal [:open, :raw, nil], note
    assert_equal :close, note.first
  end

  def test_before_the_server_runs
    serve { |server| server.connect(peer, handler: @echo) }
    assert_equal "hello\n", line(accept)
  end

  def test_the_peer_is_told_of_a_stop
    serve
    connect(peer)
    socket = accept
    line(socket)
    @server.stop
    assert_equal "shutdown\n", within { socket.read }
    @thread.join
    assert_equal [:open, :raw, nil], note
    assert_equal [:close, 1001], note
  end

  # ---- failures: on_close(nil), a line, and nothing else ----

  def test_refused
    serve
    connect(url = nowhere)
    assert_failed(/\ACould not connect to #{Regexp.escape(url)}: Connection refused\z/)
    connect("unix:///nonexistent/rondo.sock")
    assert_failed(%r{\ACould not connect to unix:///nonexistent/rondo\.sock: No such file or directory\z})
    assert_equal 0, @server.stats[:connections]
  end

  def test_a_name_that_does_not_resolve
    serve
    connect("tcp://rondo.invalid:1")
    assert_failed(%r{\ACould not connect to tcp://rondo\.invalid:1: (the name has no address|no name server has answered)})
  end

  # The queues of the listeners are full, so nobody answers.
  def test_no_answer
    serve
    url = peer
    @peer.listen(0)
    3.times { @sockets << Socket.new(:INET, :STREAM).tap { |full| full.connect_nonblock(@peer.local_address, exception: false) } }
    connect(url, timeout: 0.2)
    assert_failed(/: no answer in time\z/)
    Dir.mktmpdir do |folder|
      connect(full_unix_socket(folder), timeout: 0.2)
      assert_failed(/: no answer in time\z/)
    end
  end

  def test_the_limit_of_dials
    Dir.mktmpdir do |folder|
      url = full_unix_socket(folder)
      serve(max_dials: 1)
      connect(url)
      error = assert_raises(Rondo::DialLimitError) { @server.connect(url, handler: Echo.new) }
      assert_equal "too many connections are being made: max_dials is 1", error.message
      @sockets.push(*within { Array.new(2) { @full.accept.first } })
      assert_equal [:open, :raw, nil], note
    end
  end

  # The handler is asked for its callbacks in between, and makes a connection itself.
  def test_the_limit_of_dials_holds_at_the_moment_of_the_call
    Dir.mktmpdir do |folder|
      url = full_unix_socket(folder)
      server = serve(max_dials: 1) && @server
      first = Echo.new
      asked = Class.new(Echo) do
        define_method(:respond_to_missing?) do |name, all|
          @has_called ||= server.connect(url, handler: first)
          super(name, all)
        end
      end
      assert_raises(Rondo::DialLimitError) { server.connect(url, handler: asked.new) }
      @sockets.push(*within { Array.new(2) { @full.accept.first } })
      assert_equal [:open, :raw, nil], note(first)
      connect(peer)
      assert_equal [:open, :raw, nil], note
    end
  end

  # A connection to it waits until somebody accepts.
  def full_unix_socket(folder)
    @full = Socket.new(:UNIX, :STREAM)
    @sockets << @full
    @full.bind(Socket.sockaddr_un("#{folder}/full.sock"))
    @full.listen(0)
    @sockets << UNIXSocket.new("#{folder}/full.sock")
    "unix://#{folder}/full.sock"
  end

  def test_a_stop_ends_what_is_being_made
    Dir.mktmpdir do |folder|
      url = full_unix_socket(folder)
      serve
      connect(url)
      @server.stop
      @thread.join
      assert_failed(/: the server stops\z/)
      @server = nil
    end
  end

  def test_no_room_for_another_connection
    serve(max_connections: 1)
    connect(peer)
    line(accept)
    assert_equal :open, note.first
    second = Echo.new
    connect("tcp://127.0.0.1:#{@peer.addr[1]}", second)
    assert_failed(/: there is no room for another connection\z/, second)
  end

  # ---- handlers ----

  def test_handlers_without_callbacks
    serve
    [true, Object.new].each do |handler|
      connect(peer, handler)
      socket = accept
      socket.write("x" * 200_000)
      socket.close_write
      assert_equal "", within { socket.read }
      connect(nowhere, handler)
      assert_match(/Connection refused/, within { @log.lines.pop }.last)
    end
  end

  def test_no_handler
    serve
    [nil, false].each do |handler|
      error = assert_raises(ArgumentError) { @server.connect(nowhere, handler: handler) }
      assert_equal "an outgoing connection needs a handler, not #{handler.inspect}", error.message
    end
    assert_raises(ArgumentError) { @server.connect(nowhere) }
  end

  def test_on_close_that_raises
    serve
    handler = Class.new { def on_close(_client) = raise("bad day") }
    connect(nowhere, handler.new)
    assert_equal :warn, within { @log.lines.pop }.first
    assert_match(/bad day/, within { @log.lines.pop }.last)
  end

  # ---- arguments ----

  URLS = {
    "tcp://127.0.0.1" => /expected tcp:/, "tcp://:80" => /expected tcp:/, "tcp://a:x" => /expected tcp:/,
    "http://a:80" => /expected tcp:/, "" => /expected tcp:/, "unix://" => /expected tcp:/,
    "tcp://a:80/path" => /expected tcp:/, "tcp://user@a:80" => /expected tcp:/, "tcp://a b:80" => /expected tcp:/,
    "tcp://a:0" => /port 0 is not between/, "tcp://a:65536" => /port 65536 is not between/,
    "tcp://a\0:80" => /expected tcp:/, "tcp://a\n:80" => /expected tcp:/, "tcp://\xff:80" => /expected tcp:/,
    "tcp://#{"a" * 256}:80" => /longer than 255 bytes/, "unix:///#{"a" * 108}" => /too long/
  }.freeze

  def test_urls
    serve
    URLS.each do |url, pattern|
      error = assert_raises(Rondo::AddressError, url.inspect) { @server.connect(url, handler: @echo) }
      assert_match(pattern, error.message)
      assert_equal 1, error.message.lines.size
    end
    [nil, 80, :tcp].each { |url| assert_raises(TypeError) { @server.connect(url, handler: @echo) } }
  end

  def test_options
    serve
    error = assert_raises(ArgumentError) { @server.connect(nowhere, handler: @echo, timeot: 1) }
    assert_equal "unknown option timeot of an outgoing connection; did you mean timeout?", error.message
    [0, -1, 86_401, Float::NAN].each do |timeout|
      assert_raises(ArgumentError) { @server.connect(nowhere, handler: @echo, timeout: timeout) }
    end
    assert_raises(TypeError) { @server.connect(nowhere, handler: @echo, timeout: "1") }
  end
end
