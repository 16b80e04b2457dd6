# frozen_string_literal: true

# What the application is told of a TLS connection: of the client's certificate, and with tls_env of its protection
# (lib/rondo/identity.rb, ext/rondo/rack/rb_identity.c). The server is in the test's process.
# SPDX-License-Identifier: MIT

require_relative "../rack/rack_case"
require "json"
require "minitest/mock"
require "openssl"
require "support/certificates"
require "tmpdir"

class TLSIdentityTest < RackCase
  CLIENT = %w[SSL_CLIENT_VERIFY SSL_CLIENT_CERT SSL_CLIENT_S_DN SSL_CLIENT_I_DN SSL_CLIENT_M_SERIAL].freeze
  SHOWN = %w[SSL_PROTOCOL SSL_CIPHER SSL_TLS_SNI].freeze
  ALL = ["puma.peercert", *CLIENT, *SHOWN].freeze

  def setup
    super
    @folder = Dir.mktmpdir("rondo-identity")
    @certificates = Certificates.new(@folder)
    @own = @certificates.pair("server")
    @sockets = []
  end

  def teardown
    @sockets.each { |socket| socket.close unless socket.closed? }
    super
    FileUtils.rm_rf(@folder)
  end

  # @return [Integer] port of a second listener
  def listen(running, mode)
    query = "#{@own.query}&verify_mode=#{mode}#{"&ca=#{@certificates.authority}" unless mode == "none"}"
    running.server.listen("ssl://127.0.0.1:0?#{query}")[/\d+\z/].to_i
  end

  # @param own [Certificates::Pair, nil]
  def shake(port, own = nil, version: nil, session: nil, kept: nil, name: "localhost")
    context = OpenSSL::SSL::SSLContext.new
    context.max_version = version if version
    context.session_cache_mode = OpenSSL::SSL::SSLContext::SESSION_CACHE_CLIENT
    context.session_new_cb = ->((_, one)) { kept << one } if kept
    context.cert, context.key = read(own) if own
    socket = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", port), context)
    socket.sync_close = true
    socket.session = session if session
    socket.hostname = name if name
    @sockets << socket.connect
    socket
  end

  def read(pair)
    [OpenSSL::X509::Certificate.new(File.read(pair.certificate)), OpenSSL::PKey.read(File.read(pair.key))]
  end

  # @return [Object] what the application has said
  def ask(socket, *fields)
    socket.write("GET / HTTP/1.1\r\nhost: h\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n")
    head = socket.gets("\r\n\r\n")
    JSON.parse(socket.read(Integer(head[/content-length: (\d+)/i, 1])))
  end

  def told(**settings)
    @objects = Queue.new
    start(**settings) do |env|
      @objects << env["puma.peercert"]
      [200, {}, [env.slice(*ALL).merge("keys" => env.keys.grep(/SSL|puma/).size).transform_values(&:to_s).to_json]]
    end
  end

  def test_the_clients_certificate
    friend = @certificates.pair("friend")
    certificate, = read(friend)
    port = listen(told, "peer")
    [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].each do |version|
      seen = ask(socket = shake(port, friend, version: version), "SSL-Client-Verify: x", "ssl-client-s-dn: CN=admin")
      assert_equal(["SUCCESS", certificate.to_pem, "CN=friend", "CN=authority", certificate.serial.to_s(16)],
                   seen.values_at(*CLIENT))
      assert_equal certificate.to_pem, seen["puma.peercert"]
      assert_equal "8", seen["keys"] # with HTTP_SSL_CLIENT_VERIFY and HTTP_SSL_CLIENT_S_DN
      ask(socket)
      first, second = @objects.pop, @objects.pop
      assert_kind_of OpenSSL::X509::Certificate, first
      assert_same first, second
    end
  end

  def test_a_client_without_a_certificate
    port = listen(told, "peer")
    assert_equal({ "puma.peercert" => "", "SSL_CLIENT_VERIFY" => "NONE", "keys" => "2" }, ask(shake(port)))
  end

  def test_a_listener_that_does_not_ask
    running = told
    assert_equal({ "keys" => "0" }, ask(shake(listen(running, "none"), @certificates.pair("friend"))))
  end

  def test_a_resumed_session_keeps_the_certificate
    port = listen(told, "force_peer")
    friend = @certificates.pair("friend")
    [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].each do |version|
      ask(first = shake(port, friend, version: version, kept: kept = []))
      first.close
      ask(again = shake(port, version: version, session: kept.last)).then do |seen|
        assert_equal %w[SUCCESS CN=friend], seen.values_at("SSL_CLIENT_VERIFY", "SSL_CLIENT_S_DN")
      end
      assert_predicate again, :session_reused?
    end
  end

  def test_names_that_try_to_look_like_others
    friend = @certificates.pair("odd", subject: "a,O=b\nCN=admin\x00/CN=é")
    assert_equal 'CN=a\,O=b\0ACN=admin\00/CN=\C3\A9', ask(shake(listen(told, "peer"), friend))["SSL_CLIENT_S_DN"]
  end

  def test_how_the_connection_is_protected
    port = listen(told(tls_env: 1), "none")
    { OpenSSL::SSL::TLS1_2_VERSION => ["TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"],
      OpenSSL::SSL::TLS1_3_VERSION => %w[TLSv1.3 TLS_AES_128_GCM_SHA256] }.each do |version, expected|
      seen = ask(first = shake(port, version: version, kept: kept = []))
      assert_equal [*expected, "localhost"], seen.values_at(*SHOWN)
      assert_equal "3", seen["keys"]
      first.close
      again = ask(resumed = shake(port, version: version, session: kept.last, name: "other.test"))
      assert_equal [*expected, "other.test"], again.values_at(*SHOWN)
      assert_predicate resumed, :session_reused?
    end
    assert_equal ["TLSv1.3", "TLS_AES_128_GCM_SHA256", nil], ask(shake(port, name: nil)).values_at(*SHOWN)
    assert_nil ask(shake(port, name: "a\r\nb"))["SSL_TLS_SNI"]
  end

  # Of 300 failures, whose certificates have 12,000 together. ASan keeps most of the memory that was freed.
  GROWTH_KB = ENV.fetch("LD_PRELOAD", "").include?("asan") ? 256 * 1024 : 5000

  # What C has read of the certificate is freed, although nobody asks for it.
  def test_an_env_that_cannot_be_made
    friend = @certificates.pair("friend", names: Array.new(1500) { |n| "DNS:name-#{n}.friends.test" })
    socket = shake(listen(told, "peer"), friend)
    Rondo::Identity.stub(:keys, ->(*) { raise "no keys" }) do
      before = 300.times { fail_once(socket) } && resident_kb
      300.times { fail_once(socket) }
      assert_operator resident_kb - before, :<, GROWTH_KB
    end
    assert_equal "CN=friend", ask(socket)["SSL_CLIENT_S_DN"]
  end

  def fail_once(socket)
    socket.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    head = socket.gets("\r\n\r\n")
    socket.read(Integer(head[/content-length: (\d+)/i, 1]))
    assert_match(%r{\AHTTP/1.1 500 }, head)
  end

  def resident_kb
    GC.start
    File.read("/proc/self/status")[/^VmRSS:\s+(\d+)/, 1].to_i
  end

  def test_upgraded_connections_and_a_hijack
    friend = @certificates.pair("friend")
    handler = Object.new
    handler.define_singleton_method(:on_open) { |client| client.write(client.env.values_at("puma.peercert", "SSL_CLIENT_S_DN").join) }
    running = start(lint: false) do |env|
      env["rack.upgrade"] = handler if env["rack.upgrade?"]
      env["rack.hijack"].call.tap { |io| io.write(env["SSL_CLIENT_S_DN"]) && io.close } unless env["rack.upgrade?"]
      [200, {}, []]
    end
    port = listen(running, "force_peer")
    events = shake(port, friend).tap { |socket| socket.write("GET / HTTP/1.1\r\nhost: h\r\naccept: text/event-stream\r\n\r\n") }
    assert_includes events.gets("CN=friend"), "BEGIN CERTIFICATE"
    hijacked = shake(port, friend).tap { |socket| socket.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n") }
    assert_equal "CN=friend", hijacked.read
  end

  # Again and again, so that both caches of templates have one for each listener; the same fields on both.
  def test_each_listener_has_its_own_scheme
    [{}, { frozen_headers: 1 }].each do |settings|
      running = start(trusted_proxies: ["127.0.0.1"], **settings) do |env|
        [200, {}, [env.values_at("rack.url_scheme", "HTTPS", "SERVER_PORT", "SERVER_NAME").to_json]]
      end
      port = listen(running, "none")
      4.times do
        assert_equal [%w[https on 443 h], ["http", nil, "80", "h"]], on_both(port)
        assert_equal [["http", nil, "80", "h"], ["http", nil, "80", "h"]], on_both(port, "X-Forwarded-Proto: http")
        assert_equal [%w[https on 443 h], ["https", nil, "443", "h"]], on_both(port, "X-Forwarded-Proto: https")
      end
    end
  end

  # @return [Array] what the application is told on the port for TLS, and on the plain one
  def on_both(port, *fields)
    @secure = shake(port) if @secure_port != port
    @secure_port = port
    plain = (@plain ||= {})[@running.last] ||= connect
    plain.write("GET / HTTP/1.1\r\nhost: h\r\n#{fields.map { |field| "#{field}\r\n" }.join}\r\n")
    [ask(@secure, *fields), JSON.parse(plain.response.body)]
  end

  # Connections come and go, so their numbers are used again; requests with the same fields, so that templates are.
  def test_nobody_has_the_certificate_of_somebody_else
    running = told(max_threads: 4)
    ports = %w[peer none].map { |mode| listen(running, mode) }
    people = ["CN=ann", "CN=bob", "CN=cid"].map { |name| [name, @certificates.pair(name.delete_prefix("CN="))] } << [nil, nil]
    seen = people.each_with_index.map { |(name, own), at| Thread.new { visit(ports, own, at).map { |found| [name, found] } } }
    seen.flat_map(&:value).each { |name, (asked, silent, plain)| assert_equal [name, nil, nil], [asked, silent, plain] }
  end

  def visit(ports, own, at)
    plain = connect(@running.last)
    Array.new(8) do |turn|
      sockets = ports.map { |port| shake(port, own) }
      sockets.reverse! if (turn + at).odd?
      found = sockets.to_h { |socket| [socket.io.remote_address.ip_port, Array.new(3) { ask(socket) }.map { |seen| seen["SSL_CLIENT_S_DN"] }] }
      sockets.each(&:close)
      plain.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
      [*found.values_at(*ports).map { |all| all.uniq.then { |one| one.size == 1 ? one.first : all } }, JSON.parse(plain.response.body)["SSL_CLIENT_S_DN"]]
    end
  end
end
