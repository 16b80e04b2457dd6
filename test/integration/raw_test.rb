# frozen_string_literal: true

# Raw listeners of the configuration file, in a server without workers and in a cluster: they are announced, they stay
# raw whatever happens to their processes, and the programs of docs/RAW.md do what the page says.
# SPDX-License-Identifier: MIT

require_relative "tls/tls_case"

class RawListenersTest < TLSCase
  MANUAL = File.read(File.join(ROOT, "docs/RAW.md"))
  LISTENING = /^(?:\[\d+\] )?\* Listening on raw (\S+)$/
  # The classes of the manual, which the application has.
  CLASSES = MANUAL.scan(/^```ruby\n(class .*?)^```$/m).flatten.join("\n")

  def setup
    super
    write "config.ru", "#{CLASSES}\n#{HELLO}"
  end

  def within(&block)
    Timeout.timeout(PATIENCE, &block)
  end

  # @param lines [String] of the configuration file
  # @return [Server] that is ready
  def raw(lines, *words, **options)
    write "config/rondo.rb", lines
    server = start(*words, **options)
    server.wait_for_log(/^.*Use Ctrl-C to stop$/)
    server.wait_for_log(/(booted in.*){2}/m) if lines.include?("workers 2")
    server
  end

  def address(server, index = 0)
    server.log.scan(LISTENING).flatten[index]
  end

  # Says words and hears them, on a connection of its own.
  def assert_echo(address, socket = dial_url(address))
    socket.write("words\n")
    assert_equal "words\n", within { socket.gets }
    socket.write("bye\n")
    assert_equal "bye\n", within { socket.read }
  end

  # Returns when the workers of before have ended: they close their raw connections.
  def restart(server, signal, pattern, replaces: true)
    from = server.log.bytesize
    before = server.log.scan(/Worker \d+ \(PID: (\d+)\) booted/).flatten.map(&:to_i)
    server.signal(signal)
    server.wait_for_log(pattern, from: from)
    within { sleep 0.01 while before.any? { |pid| alive?(pid) } } if replaces
  end

  # ---- the echo of the manual ----

  ECHO = "listen_raw(\"tcp://127.0.0.1:0\") { Echo.new }\n"

  def test_one_process
    server = raw(<<~RUBY)
      #{ECHO}
      listen_raw "unix://#{@folder}/raw.sock", -> { Echo.new }
      listen_raw "ssl://127.0.0.1:0?#{@pair.query}", -> { Echo.new }
    RUBY
    assert_match(%r{\Atcp://127\.0\.0\.1:\d+\z}, address(server))
    assert_echo(address(server))
    assert_equal "unix://#{@folder}/raw.sock", address(server, 1)
    assert_echo(address(server, 1))
    assert_secure_echo(address(server, 2))
    assert_equal "hello", get(server).body
    before = (0..2).map { |index| address(server, index) }
    restart(server, "USR2", /Use Ctrl-C to stop/)
    assert_equal before, (3..5).map { |index| address(server, index) }
    assert_echo(before[0])
    assert_echo(before[1])
    assert_secure_echo(before[2])
    assert_equal "hello", get(server).body
  end

  def test_workers
    server = raw("workers 2\n#{ECHO}listen_raw(\"ssl://127.0.0.1:0?#{@pair.query}\") { Echo.new }\n")
    check = lambda do
      8.times { assert_echo(address(server)) }
      assert_secure_echo(address(server, 1))
    end
    check.call
    restart(server, "USR1", /(phase: 1.*){2}/m)
    check.call
    restart(server, "TTIN", /Worker 2 .*booted/, replaces: false)
    check.call
    restart(server, "USR2", /(booted in.*){2}/m)
    check.call
    assert_equal "hello", get(server).body
  end

  # The handshake agrees upon no protocol: pages of a browser have nothing to speak here.
  def assert_secure_echo(address)
    context = OpenSSL::SSL::SSLContext.new
    context.ca_file = @certificates.authority
    context.verify_mode = OpenSSL::SSL::VERIFY_PEER
    context.alpn_protocols = %w[http/1.1]
    secure = OpenSSL::SSL::SSLSocket.new(dial_url(address), context)
    secure.sync_close = true
    within { secure.connect }
    assert_nil secure.alpn_protocol
    assert_echo(address, secure)
  ensure
    secure&.close
  end

  # ---- the chat of the manual ----

  # Two people, each with another worker as often as the kernel wants it.
  def test_chat
    server = raw("workers 2\nlisten_raw(\"tcp://127.0.0.1:0\") { Chat.new }\n")
    people = %w[Ann Ben Cy].map do |name|
      socket = dial_url(address(server))
      within { socket.readpartial(100) }
      socket.write("#{name}\n")
      assert_equal "#{name} is here.\n", within { socket.gets }
      socket
    end
    people[1].write("hello\n")
    people.each { |socket| within { nil until socket.gets == "Ben: hello\n" } }
    people[2].write("bye\n")
    within { nil until people[0].gets == "Cy has left.\n" }
    server.signal("INT")
    within { nil until people[0].gets == "The server goes home. Goodbye!\n" }
    assert_nil within { people[0].gets }
    server.stop
  end

  # ---- a request of the manual ----

  def test_request
    write "config.ru", "#{CLASSES}\n#{MANUAL[/^```ruby\n(run lambda.*?)^```$/m, 1]}"
    server = raw("")
    socket = dial_url(server.url)
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
    head = within { socket.gets("\r\n\r\n") }
    assert_equal "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n", head
    assert_echo(nil, socket)
  end

  # ---- configurations ----

  # The port of a raw listener becomes no other listener when it is configured no more, and new workers close its clients.
  def test_a_listener_that_is_configured_no_more
    server = raw("workers 2\n#{ECHO}", binds: ["tcp://127.0.0.1:0"])
    assert_echo(address(server))
    write "config/rondo.rb", "workers 2\n"
    restart(server, "USR1", /(phase: 1.*){2}/m)
    assert_match(/Closing all connections to raw .*: the configuration file has no listen_raw for it/, server.log)
    assert_ends(dial_url(address(server)))
    restart(server, "USR2", /(booted in.*){2}/m)
    assert_raises(Errno::ECONNREFUSED) { within { loop { dial_url(address(server)) } } }
  end

  def assert_ends(socket)
    assert_nil within { socket.gets }
  rescue Errno::ECONNRESET
    pass
  end

  # The address that is the default is HTTP, and the raw one stays raw beside it.
  def test_no_other_address
    held = HeldPort.new
    server = raw(ECHO, "-p", held.number.to_s, binds: [], env: { "HOST" => "127.0.0.1" })
    restart(server, "USR2", /Use Ctrl-C to stop/)
    assert_echo(address(server))
    assert_equal 2, server.log.scan(LISTENING).size
  ensure
    held&.close
  end

  def test_wrong_words
    { 'listen_raw("tcp://127.0.0.1:0")' => /listen_raw tcp:.*a handler or a block/,
      'listen_raw("nonsense") { 1 }' => /listen_raw nonsense: expected tcp:/,
      'listen_raw("tcp://127.0.0.1:7000") { 1 }; listen_raw("tcp://127.0.0.1:7000?backlog=3") { 2 }' => /is there twice/,
      'bind "raw tcp://127.0.0.1:0"' => /listen_raw does that/ }.each do |line, said|
      write "config/rondo.rb", line
      result = rondo
      assert_equal 1, result.code, line
      assert_match(said, result.err)
    end
  end

  def test_check
    write "config/rondo.rb", "bind \"tcp://127.0.0.1:0\"\n#{ECHO}"
    result = rondo("check")
    assert_equal 0, result.code, result.out
    assert_match(%r{raw tcp://127\.0\.0\.1:\d+}, result.out)
  end
end
