# frozen_string_literal: true

# Outgoing connections with TLS (config/tls_call.rb, ext/rondo/tls/tls_client.c): whom they believe, what they show, and
# peers that never finish their handshake. The peers are those of Ruby's OpenSSL, and this server's own listener.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "tmpdir"
require "support/certificates"
require "support/outgoing_case"

class TLSCallTest < OutgoingCase
  def setup
    skip "OpenSSL is missing in this build" unless Rondo::TLS.library
    super
    @folder = Dir.mktmpdir
    @certificates = Certificates.new(@folder)
    @pair = @certificates.pair("peer")
    @ca = @certificates.authority
  end

  def teardown
    super
    FileUtils.rm_rf(@folder) if @folder
  end

  # @return [String] the URL of a peer that speaks TLS as soon as it is asked to
  def secure_peer(pair = @pair, host: "127.0.0.1")
    @context = OpenSSL::SSL::SSLContext.new
    @context.add_certificate(OpenSSL::X509::Certificate.new(File.read(pair.certificate)),
                             OpenSSL::PKey.read(File.read(pair.key)))
    yield @context if block_given?
    peer.sub("tcp:", "tls:").sub("127.0.0.1", host)
  end

  # @return [OpenSSL::SSL::SSLSocket] the peer's end
  def shake
    socket = OpenSSL::SSL::SSLSocket.new(accept, @context)
    within { socket.accept }
    socket
  end

  # The peer's end of a handshake that fails.
  def assert_refused(pattern)
    socket = OpenSSL::SSL::SSLSocket.new(accept, @context)
    assert_raises(OpenSSL::SSL::SSLError, SystemCallError) { within { socket.accept && socket.readpartial(1) } }
    assert_failed(pattern)
  end

  # ---- connections ----

  def test_verified
    serve
    name = nil
    url = secure_peer(host: "localhost") { |context| context.servername_cb = ->((_socket, asked)) { (name = asked) && nil } }
    connect(url, ca: @ca)
    socket = shake
    assert_equal "hello\n", line(socket)
    assert_equal "localhost", name
    assert_operator socket.ssl_version, :>=, "TLSv1.2"
    assert_nil socket.peer_cert
    assert_equal [:open, :raw, nil], note
    words = "x" * 1_000_000
    writer = Thread.new { within { socket.write(words) } }
    assert_equal words, within { socket.read(words.size) }
    writer.join
    socket.close
    assert_equal [:close, 1005], note
    assert_empty @log.lines
  end

  # An address is compared with the addresses of the certificate, and is no name to ask for.
  def test_an_address
    serve
    names = []
    connect(secure_peer { |context| context.servername_cb = ->((_socket, asked)) { (names << asked) && nil } }, ca: @ca)
    assert_equal "hello\n", line(shake)
    assert_empty names
  end

  def test_versions
    serve
    %w[TLS1_2_VERSION TLS1_3_VERSION].each do |version|
      number = OpenSSL::SSL.const_get(version)
      connect(secure_peer { |context| context.min_version = context.max_version = number }, ca: @ca)
      assert_equal "hello\n", line(shake)
      assert_equal :open, note.first
    end
  end

  def test_a_listener_of_this_server
    there = Echo.new
    raw = nil
    serve { |server| raw = server.listen_raw("ssl://127.0.0.1:0?#{@pair.query}", there) }
    heard = Queue.new
    ours = Class.new { define_method(:on_message) { |_client, data| heard << data } }
    connect(raw.sub("ssl:", "tls:"), ours.new, ca: @ca)
    assert_equal "hello\n", within { heard.pop }
    assert_equal [:open, :raw, nil], note(there)
  end

  def test_the_system_decides_whom_to_believe
    serve
    connect(secure_peer)
    assert_refused(/self-signed certificate|unable to get local issuer certificate/)
    ENV["SSL_CERT_FILE"] = @ca
    connect(secure_peer)
    assert_equal "hello\n", line(shake)
  ensure
    ENV.delete("SSL_CERT_FILE")
  end

  def test_server_name
    serve
    pair = @certificates.pair("named", names: %w[DNS:name.example])
    connect(secure_peer(pair), ca: @ca, server_name: "name.example")
    assert_equal "hello\n", line(shake)
  end

  def test_a_certificate_of_our_own
    serve
    ours = @certificates.pair("ours", usage: "clientAuth")
    url = secure_peer do |context|
      context.ca_file = @ca
      context.verify_mode = OpenSSL::SSL::VERIFY_PEER | OpenSSL::SSL::VERIFY_FAIL_IF_NO_PEER_CERT
    end
    connect(url, ca: @ca, cert: ours.certificate, key: ours.key)
    socket = shake
    assert_equal "hello\n", line(socket)
    assert_equal "/CN=ours", socket.peer_cert.subject.to_s
  end

  def test_a_key_with_a_password
    serve
    ours = @certificates.pair("locked", usage: "clientAuth", password: "secret")
    url = secure_peer do |context|
      context.ca_file = @ca
      context.verify_mode = OpenSSL::SSL::VERIFY_PEER | OpenSSL::SSL::VERIFY_FAIL_IF_NO_PEER_CERT
    end
    given = { ca: @ca, cert: ours.certificate, key: ours.key }
    { {} => "is encrypted, and there is no password", { key_password: "wrong" } => "locked.key.pem" }.each do |password, error|
      assert_includes assert_raises(Rondo::AddressError) { connect(url, **given, **password) }.message, error
    end
    connect(url, **given, key_password: "secret")
    assert_equal "/CN=locked", shake.peer_cert.subject.to_s
  end

  def test_alpn
    serve
    connect(secure_peer { |context| context.alpn_select_cb = ->(names) { names.last } }, ca: @ca, alpn: %w[one two])
    socket = shake
    assert_equal "hello\n", line(socket)
    assert_equal %w[two two], [socket.alpn_protocol, @echo.client.alpn]
  end

  # ---- peers that are not believed ----

  def test_an_authority_that_is_not_known
    serve
    others = Certificates.new(@folder, "others").authority
    connect(secure_peer, ca: others)
    assert_refused(%r{\ACould not connect to tls://127\.0\.0\.1:\d+: (unable to get local issuer|self-signed) certificate})
    connect(secure_peer, ca: others, verify: false)
    assert_equal "hello\n", line(shake)
  end

  # What is not given is not false.
  def test_options_that_are_nil
    serve
    others = Certificates.new(@folder, "others").authority
    connect(secure_peer, ca: others, verify: nil, server_name: nil)
    assert_refused(/(unable to get local issuer|self-signed) certificate\z/)
  end

  def test_a_revoked_certificate
    serve
    connect(secure_peer, ca: @certificates.revocations(@certificates.pair("lost")))
    assert_equal "hello\n", line(shake)
    assert_equal :open, note.first
    connect(secure_peer, ca: @certificates.revocations(@pair))
    assert_refused(/: certificate revoked\z/)
  end

  def test_other_names
    serve
    other = @certificates.pair("other", names: %w[DNS:other.example IP:127.0.0.2])
    connect(secure_peer(other, host: "localhost"), ca: @ca)
    assert_refused(/: hostname mismatch\z/)
    connect(secure_peer(other), ca: @ca)
    assert_refused(/: IP address mismatch\z/)
  end

  def test_an_old_certificate
    serve
    connect(secure_peer(@certificates.pair("old", days: -3..-1)), ca: @ca)
    assert_refused(/: certificate has expired\z/)
  end

  # ---- handshakes that fail ----

  def test_a_peer_that_says_nothing
    serve
    connect(secure_peer, ca: @ca, timeout: 0.2)
    accept
    assert_failed(/: the handshake has not ended in time\z/)
  end

  def test_a_peer_that_leaves
    serve
    connect(secure_peer, ca: @ca)
    accept.close
    assert_failed(/\ACould not connect to tls:/)
  end

  # A limit of our own is no failure of the peer.
  def test_more_handshakes_than_there_may_be
    serve(max_handshakes: 1)
    url = secure_peer
    connect(url, ca: @ca)
    accept
    within { Thread.pass until @server.stats[:handshakes] == 1 }
    connect(url, Echo.new, ca: @ca)
    assert_failed(/: TLS handshakes of all clients are as many as they may be\z/)
  end

  def test_a_peer_that_speaks_something_else
    serve
    connect(secure_peer, ca: @ca)
    accept.write("220 ready\r\n" * 10)
    assert_failed(/: wrong version number\z/)
  end

  def test_a_stop
    serve
    connect(secure_peer, ca: @ca)
    accept
    within { Thread.pass until @server.stats[:connections] == 1 }
    @server.stop
    within { @thread.join }
    assert_failed(/: the server stops\z/)
    @server = nil
  end

  # ---- options ----

  # Errors of Ruby show the object that they are about.
  def test_a_password_is_not_shown
    with_password = { cert: "a", key: "b", key_password: "secret" }
    refute_includes Rondo::Outgoing.new("tls://localhost:1", @echo, with_password).inspect, "secret"
    assert_equal "#<Rondo::TLS::Call>", Rondo::TLS::Call.new("tls://localhost:1", "localhost", with_password).inspect
  end

  BAD = {
    { verify: 1 } => /verify must be true or false, not 1/, { cert: "a" } => /cert and key go together/,
    { ca: "a\0b" } => /ca has a null byte/, { key_password: "x" } => /key_password needs key/, { alpn: "h2" } => /alpn must be an Array/, { alpn: [""] } => /alpn must be/,
    { server_name: "" } => /server_name has from 1/, { verfy: true } => /unknown option verfy .*did you mean verify/
  }.freeze

  def test_options
    serve
    BAD.each do |options, pattern|
      error = assert_raises(ArgumentError) { @server.connect("tls://localhost:1", handler: @echo, **options) }
      assert_match(pattern, error.message)
    end
    assert_raises(TypeError) { @server.connect("tls://localhost:1", handler: @echo, ca: 1) }
    error = assert_raises(ArgumentError) { @server.connect("tcp://localhost:1", handler: @echo, verify: false) }
    assert_equal "verify is an option of tls: and wss:, not of tcp://localhost:1", error.message
  end

  def test_files
    serve
    { { ca: "#{@folder}/none.pem" } => /none\.pem: No such file/, { ca: @pair.key } => /it has no certificate/,
      { ca: @ca, cert: @ca, key: @pair.key } => /authority\.pem|key/ }.each do |options, pattern|
      error = assert_raises(Rondo::AddressError) { @server.connect("tls://localhost:1", handler: @echo, **options) }
      assert_match(%r{\Acannot connect to tls://localhost:1: }, error.message)
      assert_match(pattern, error.message)
      assert_equal 1, error.message.lines.size
    end
  end

  # What connections had in common is freed after the last of them, and is there again when it is asked for.
  def test_many_sets_of_options_in_a_row
    serve
    url = secure_peer
    70.times do |i|
      connect(url, verify: false, alpn: ["name#{i}"])
      socket = shake
      assert_equal "hello\n", line(socket)
      socket.close
      assert_equal [[:open, :raw, nil], [:close, 1005]], [note, note]
    end
    refused = nowhere.sub("tcp:", "tls:")
    140.times do |i|
      connect(refused, verify: false, alpn: ["name#{i % 70}"])
      assert_equal [:close, nil], note
    end
  end

  def test_a_limit_of_sets_of_options_in_use
    serve
    url = secure_peer
    error = assert_raises(Rondo::AddressError) do
      65.times { |i| @server.connect(url, handler: @echo, verify: false, alpn: ["name#{i}"]) }
    end
    assert_equal "cannot connect to #{url}: 64 different sets of TLS options are in use", error.message
    @server.connect(url, handler: @echo, verify: false, alpn: ["name0"])
    @server.stop
    65.times { assert_equal [:close, nil], note }
    @thread.join
    @server = nil
  end
end
