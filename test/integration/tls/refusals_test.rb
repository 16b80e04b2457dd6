# frozen_string_literal: true

# Handshakes that fail: what the client is told, and the line of the log. Certificates of clients as a table: who may come
# in with which verify_mode and flags. The server is in the test's process.
# SPDX-License-Identifier: MIT

require_relative "../rack/rack_case"
require "openssl"
require "support/certificates"
require "tmpdir"

class TLSRefusalsTest < RackCase
  VERSIONS = [OpenSSL::SSL::TLS1_2_VERSION, OpenSSL::SSL::TLS1_3_VERSION].freeze
  INVALID = "certificate of the client is not valid"
  # As OpenSSL 3.0 and as 3.6 says it.
  NOT_YET = ["", " or the system clock is incorrect"].map { |more| "#{INVALID} (certificate is not yet valid#{more})" }.freeze
  # Who, with which words of the address; what the client reads, what the log says. No alert: the client is let in.
  ROWS = [
    [nil, "verify_mode=none"],
    ["stranger", "verify_mode=none"],
    [nil, "verify_mode=peer&CA"],
    ["friend", "verify_mode=peer&CA"],
    ["friend", "verify_mode=force_peer&CA"],
    [nil, "verify_mode=force_peer&CA", /alert (?:certificate required|handshake failure)/, "client without a certificate"],
    ["stranger", "verify_mode=peer&CA", /alert unknown ca/, "#{INVALID} (unable to get local issuer certificate)"],
    ["selfsigned", "verify_mode=peer&CA", /alert unknown ca/, "#{INVALID} (self-signed certificate)"],
    ["old", "verify_mode=peer&CA", /alert certificate expired/, "#{INVALID} (certificate has expired)"],
    ["early", "verify_mode=peer&CA", /alert bad certificate/, NOT_YET],
    ["purpose", "verify_mode=peer&CA", /alert unsupported certificate/, "#{INVALID} (unsuitable certificate purpose)"],
    ["old", "verify_mode=force_peer&CA&verification_flags=NO_CHECK_TIME"],
    ["friend", "verify_mode=peer&CA&verification_flags=CRL_CHECK", /alert unknown ca/, "#{INVALID} (unable to get certificate CRL)"],
    ["friend", "verify_mode=peer&CRL&verification_flags=CRL_CHECK"],
    ["revoked", "verify_mode=peer&CRL&verification_flags=CRL_CHECK", /alert certificate revoked/, "#{INVALID} (certificate revoked)"],
    ["revoked", "verify_mode=peer&CRL"],
    ["friend", "verify_mode=peer&FRIEND", /alert unknown ca/, "#{INVALID} (unable to get issuer certificate)"],
    ["friend", "verify_mode=peer&FRIEND&verification_flags=PARTIAL_CHAIN"]
  ].freeze

  def setup
    super
    @folder = Dir.mktmpdir("rondo-refusals")
    @certificates = Certificates.new(@folder)
    @own = @certificates.pair("server")
    serve_plain
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  def people
    Dir.mkdir(other = File.join(@folder, "other"))
    other = Certificates.new(other, "others")
    revoked = @certificates.pair("revoked")
    { "friend" => @certificates.pair("friend"), "old" => @certificates.pair("old", days: -9..-1), "revoked" => revoked,
      "early" => @certificates.pair("early", days: 2..9), "stranger" => other.pair("stranger"),
      "purpose" => @certificates.pair("purpose", usage: "serverAuth"), "selfsigned" => other.own,
      "CA" => @certificates.authority, "CRL" => @certificates.revocations(revoked) }
  end

  def serve_plain
    start { |_env| [200, {}, ["in"]] }
  end

  def listen(query)
    @running.last.server.listen("ssl://127.0.0.1:0?#{@own.query}&#{query}")[/\d+\z/].to_i
  end

  # @return [String] the answer, or what the client says of the alert
  def visit(port, own, version)
    context = OpenSSL::SSL::SSLContext.new
    context.max_version = version
    context.cert, context.key = OpenSSL::X509::Certificate.new(File.read(own.certificate)), OpenSSL::PKey.read(File.read(own.key)) if own
    socket = TCPSocket.new("127.0.0.1", port)
    secure = OpenSSL::SSL::SSLSocket.new(socket, context).connect
    secure.write("GET / HTTP/1.0\r\n\r\n")
    secure.read
  rescue OpenSSL::SSL::SSLError => e
    e.message
  ensure
    socket&.close
  end

  def test_certificates_of_clients
    known = people
    words = { "CA" => "ca=#{known["CA"]}", "CRL" => "ca=#{known["CRL"]}", "FRIEND" => "ca=#{known["friend"].certificate}" }
    ROWS.each do |who, query, alert, line|
      query = query.sub(/\b(?:CA|CRL|FRIEND)(?=&|\z)/, words)
      if query.include?("ca=#{known["friend"].certificate}") && !query.include?("PARTIAL_CHAIN")
        assert_raises(Rondo::AddressError) { listen(query) }
        next
      end
      serve_plain if alert # each has its own lines a second
      check_row(listen(query), who, known[who], alert, line)
    end
  end

  def check_row(port, who, own, alert, line)
    VERSIONS.each do |version|
      before = log.size
      found = visit(port, own, version)
      alert ? assert_match(alert, found, who) : assert_match(/\r\n\r\nin\z/, found, who)
      wait_until("a line about #{who}") { [*line].any? { |words| log[before..].include?(words) } } if line
    end
  end

  def wait_until(what)
    Timeout.timeout(PATIENCE) { Thread.pass until yield }
  rescue Timeout::Error
    flunk "this never came: #{what}\n#{log}"
  end

  def test_who_knows_no_tls
    port = listen("verify_mode=none")
    { "GET / HTTP/1.1\r\nhost: a\r\n\r\n" => [/\AHTTP.1\.1 400 .*use https:/m, /: plain HTTP on a port for TLS: use https:/],
      "\x05\x01\x00\e[31m#{"a" * 20}" => [/\A(?:\x15|\z)/n, /: malformed handshake \(/],
      "\x16\x03\x01\x00\x05\x01\x00" => [/\A\z/, /: connection ended in the TLS handshake$/] }.each do |bytes, (answer, line)|
      TCPSocket.open("127.0.0.1", port) do |socket|
        socket.write(bytes)
        socket.close_write
        assert_match answer, socket.read.b
      end
      wait_until("a line for #{bytes.inspect}") { log.match?(/info: Handshake of 127\.0\.0\.1(?::\d+)? failed#{line}/) }
    end
  end

  def test_tls_on_a_plain_port
    client = connect(@running.last)
    client.write("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert_equal 400, client.response.status
    wait_until("a line") { log.match?(/info: Refused a request of 127\.0\.0\.1: .*\(400\)/) }
  end

  # What a client sends never reaches the log as it is.
  def test_a_flood_is_a_few_lines
    port = listen("verify_mode=none")
    40.times { TCPSocket.open("127.0.0.1", port) { |socket| socket.write("\x01\e[31m\n") && socket.close_write && socket.read } }
    wait_until("all failures") { @running.last.server.stats[:tls_failed] == 40 }
    assert_operator log.scan("Handshake of").size, :<, 40
    refute_includes log, "\e"
    wait_until("a line with the number of the others") do
      TCPSocket.open("127.0.0.1", port) { |socket| socket.write("\x01") && socket.close_write && socket.read }
      log.match?(/failed: .*; \d+ more failed before it/)
    end
  end
end
