# frozen_string_literal: true

# Ports for TLS that come from elsewhere: sockets of systemd, connections that begin with a PROXY header.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require_relative "../rack/rack_case"
require "support/proxy_process"

class TLSActivatedTest < TLSCase
  # Becomes the server, with descriptors as systemd passes them: one for each address, and at least one.
  class Activated < Server
    private

    def command_line(app, settings, config, binds, args)
      ["sh", "-c", "LISTEN_FDS=#{[binds.size, 1].max} LISTEN_PID=$$ exec \"$@\"", "sh", *super]
    end
  end

  def ask(port, scheme)
    words = ["--cacert", @certificates.authority, "--resolve", "localhost:#{port}:127.0.0.1"]
    run_command("curl", "-sS", "--max-time", PATIENCE.to_s, *words, "#{scheme}://localhost:#{port}/").out
  end

  # Also after a restart by exec, in which the sockets come from the process itself.
  def test_each_socket_keeps_what_is_spoken_on_it
    sockets = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
    secret, plain = sockets.map { |socket| socket.addr[1] }
    server = Activated.new(nil, binds: ["tcp://127.0.0.1:#{plain}", "ssl://127.0.0.1:#{secret}?#{@pair.query}"], env: BLANK,
                                spawn: { chdir: @folder, 3 => sockets[0].fileno, 4 => sockets[1].fileno })
    @servers << server
    2.times do |turn|
      server.wait_for_log(/(Use Ctrl-C to stop.*){#{turn + 1}}/m)
      assert_equal ["https on #{secret}", "http  #{plain}"], [ask(secret, "https"), ask(plain, "http")]
      assert_match(/use https:/, ask(secret, "http"))
      assert_empty ask(plain, "https")
      server.signal("USR2") if turn.zero?
    end
  ensure
    sockets.each(&:close)
  end

  # Where nothing else says where to listen. After a restart by exec, too.
  def test_words_of_iodine_are_about_the_sockets_of_systemd
    [[], %w[-w 1]].each do |words|
      TCPServer.open("127.0.0.1", 0) do |socket|
        port = socket.addr[1]
        server = Activated.new(nil, binds: [], args: ["-tls", "-cert", @pair.certificate, "-key", @pair.key, *words],
                                    env: BLANK, spawn: { chdir: @folder, 3 => socket.fileno })
        @servers << server
        2.times do |turn|
          server.wait_for_log(/(Use Ctrl-C to stop.*){#{turn + 1}}/m)
          assert_equal "https on #{port}", ask(port, "https")
          server.signal("USR2") if turn.zero?
        end
        assert_equal ["https://127.0.0.1:#{port}"], server.log.scan(/Listening on (\S+)/).flatten.uniq
      end
    end
  end
end

class TLSProxyProtocolTest < RackCase
  V2 = "\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x07\x7f\0\0\1\x12\x34\0\x50".b
  V1 = "PROXY TCP4 203.0.113.7 127.0.0.1 4660 80\r\n".b

  def setup
    super
    @folder = Dir.mktmpdir("rondo-proxy")
    pair = Certificates.new(@folder).pair("server")
    running = start(proxy_protocol_from: ["127.0.0.1"]) do |env|
      [200, {}, [env.values_at("REMOTE_ADDR", "rack.url_scheme", "HTTPS").join(" ")]]
    end
    @port = running.server.listen("ssl://127.0.0.1:0?#{pair.query}")[/\d+\z/].to_i
  end

  def teardown
    @proxy&.stop
    super
    FileUtils.rm_rf(@folder)
  end

  # A client whose first bytes have the header before them, and leave in two pieces.
  def ask_in_pieces(header, cut)
    near, far = UNIXSocket.pair
    server = TCPSocket.new("127.0.0.1", @port)
    server.setsockopt(:TCP, :NODELAY, true)
    relay = Thread.new { carry(far, server, header, cut) }
    secure = OpenSSL::SSL::SSLSocket.new(near).connect
    secure.write("GET / HTTP/1.0\r\n\r\n")
    secure.read[/\r\n\r\n(.*)\z/m, 1]
  ensure
    [near, far, server].each(&:close)
    relay.join
  end

  def carry(far, server, header, cut)
    first = header + far.readpartial(10_000)
    server.write(first.byteslice(0, cut))
    server.flush
    server.write(first.byteslice(cut..))
    loop do
      IO.select([far, server]).first.each { |one| (one == far ? server : far).write(one.readpartial(100_000)) }
    end
  rescue IOError, SystemCallError
    nil
  end

  def test_a_header_before_the_handshake
    [V1, V2].each do |header|
      [*1..(header.bytesize + 12), header.bytesize + 100].each do |cut|
        assert_equal "203.0.113.7 https on", ask_in_pieces(header, cut), cut
      end
    end
  end

  def test_what_is_no_header
    socket = TCPSocket.new("127.0.0.1", @port)
    socket.write("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03#{"a" * 40}")
    assert_empty socket.read
    Timeout.timeout(PATIENCE) { Thread.pass until log.include?("malformed PROXY header") }
  ensure
    socket.close
  end

  def test_haproxy
    skip "haproxy is not installed" unless ProxyProcess.find("haproxy")
    @proxy = ProxyProcess.new("haproxy", @port, patience: "30s", server: "send-proxy-v2 ssl verify none")
    client = RawClient.new("http://127.0.0.1:#{@proxy.port}")
    @clients << client
    client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_equal "127.0.0.1 https on", client.response.body
  end
end
