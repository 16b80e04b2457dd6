# frozen_string_literal: true

# Handshakes: versions, names, certificates of clients, tickets, and what is no handshake.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSHandshakesTest < TLSCase
  def test_versions
    server = secure
    %w[-tls1_2 -tls1_3].each do |version|
      result = openssl("s_client", server, version, "-verify_return_error")
      assert_match(/Verification: OK/, result.out, result.err)
    end
    refute_equal 0, openssl("s_client", server, "-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0").code
    server.wait_for_log(/no common version of TLS/)
  end

  def test_a_protocol_nobody_has
    server = secure
    assert_match(/no application protocol/, openssl("s_client", server, "-alpn", "h9").err)
    assert_match(/ALPN protocol: http.1\.1/, openssl("s_client", server, "-alpn", "h9,http/1.1").out)
    server.wait_for_log(/no common protocol in ALPN/)
  end

  def test_tickets
    server = secure
    %w[-tls1_2 -tls1_3].each do |version|
      input = "GET / HTTP/1.0\r\n\r\n"
      words = ["openssl", "s_client", "-connect", "127.0.0.1:#{server.port}", version, "-ign_eof"]
      first, = Open3.capture2e(*words, "-sess_out", File.join(@folder, "session"), stdin_data: input)
      assert_match(/^New, /, first)
      again, = Open3.capture2e(*words, "-sess_in", File.join(@folder, "session"), stdin_data: input)
      assert_match(/^Reused, /, again, version)
    end
  end

  def test_certificates_by_name
    other = @certificates.pair("other", names: %w[DNS:other.test DNS:*.wild.test], key: OpenSSL::PKey::RSA.new(2048))
    server = secure(query: "#{@pair.query}&#{other.query}")
    %w[localhost other.test a.wild.test].each do |host|
      result = curl(server, host: host)
      assert_match(/\Ahttps on /, result.out, result.err)
    end
    assert_match(/no alternative certificate subject name/, curl(server, host: "unknown.test").err)
  end

  def test_clients_with_certificates
    friend = @certificates.pair("friend", names: [])
    server = secure(query: "#{@pair.query}&verify_mode=force_peer&ca=#{@certificates.authority}")
    words = ["--cert", friend.certificate, "--key", friend.key]
    assert_match(/\Ahttps on /, curl(server, "/", *words).out)
    refute_equal 0, curl(server).code
    server.wait_for_log(/127\.0\.0\.1.*client without a certificate/)
  end

  def test_plain_http_on_such_a_port
    server = secure
    result = run_command("curl", "-sSi", "http://127.0.0.1:#{server.port}/")
    assert_match(/\AHTTP.1\.1 400 .*use https:/m, result.out)
    server.wait_for_log(/plain HTTP on a port for TLS/)
  end

  def test_many_handshakes
    server = secure
    result = openssl("s_time", server, "-new", "-time", "1")
    assert_match(/[1-9]\d* connections in/, result.out, result.err)
    result = openssl("s_time", server, "-reuse", "-time", "1", "-tls1_2", "-www", "/")
    assert_match(/[1-9]\d* connections in/, result.out, result.err)
    assert_match(/\Ahttps on /, curl(server).out)
  end
end
