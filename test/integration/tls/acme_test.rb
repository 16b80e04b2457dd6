# frozen_string_literal: true

# Certificates from an ACME server, as far as every run of the tests looks at them: the first one, what a server does
# without one, port 80. The rest is in test/acme.
# SPDX-License-Identifier: MIT

require_relative "acme_case"

class AcmeTest < AcmeCase
  def away
    { directory: "https://127.0.0.1:1/dir", authority: @certificates.authority }
  end

  def test_the_first_certificate_with_workers
    server = fetching("-w", "2")
    server.wait_for_log(/^- Certificates: certificate for #{NAME} until /)
    eventually("an answer") { fetch.out == "https on #{https_port}" }
    assert_equal 0o600, File.stat(stored).mode & 0o777
    status = rondo("cert", "status", *words, env: environment)
    assert_match(/\A#{NAME}: valid until .* by Pebble /, status.out)
    assert_equal 0, status.code
  end

  def test_without_the_server_it_serves_on
    server = fetching(**away)
    server.wait_for_log(/^! Certificates: no certificate for #{NAME}: 127\.0\.0\.1 (?:does not answer|cannot be reached.*); next try in \d+ s$/)
    assert_match(/unrecognized.name/, run_command("openssl", "s_client", "-connect", "127.0.0.1:#{https_port}").err)
    assert_match(%r{\AHTTP/1\.1 308 .*^location: https://127\.0\.0\.1:#{https_port}/a\?b\r}m, plain("/a?b").out)
    status = rondo("cert", "status", *words(**away), env: environment)
    assert_match(/\A#{NAME}: no certificate; tried 1 times in vain: .*; next try at /, status.out)
    assert_equal 1, status.code
  end

  # It was switched off for longer than the rest of its certificate's life. Only a server that runs can fetch the next.
  def test_a_start_with_a_certificate_that_has_expired
    late = @certificates.pair("late", names: ["DNS:#{NAME}"], days: -9..-2)
    write "state/live/#{NAME}.pem", File.read(late.certificate) + File.read(late.key)
    server = fetching(**away)
    server.wait_for_log(/^! the certificate in \S*#{NAME}.pem expires on /)
    assert_operator shown.not_after, :<, Time.now
    server.wait_for_log(/^! Certificates: no certificate for #{NAME}: /)
  end

  def test_port_80_answers_while_ruby_is_stuck
    while_stuck(-> { fetching(binds: ["tcp://127.0.0.1:0"], **away) }) do
      write "state/webroot/.well-known/acme-challenge/token_1-A", "token_1-A.hash"
      assert_match(/ 200 .*\r\n\r\ntoken_1-A\.hash\z/m, plain("/.well-known/acme-challenge/token_1-A").out)
      assert_match(/\A\S+ 404 /, plain("/.well-known/acme-challenge/token_2").out)
      assert_match(%r{ 308 .*^location: https://www\.example\.com/x\r}m, plain("/x", "-H", "host: www.example.com").out)
    end
  end

  def test_mistakes
    complaints = {
      %w[--tls-domain *.example.com] => /tls_domain must be names of hosts, without wildcards, not "\*\.example\.com"/,
      %w[--tls-domain 127.0.0.1] => /tls_domain must be names of hosts/,
      %w[--tls-domain a.example.com --tls-directory http://a.example.com] => /tls_directory must be an https:.. URL/
    }
    complaints.each { |words, line| assert_match(line, rondo(*words, env: environment).err) }
    assert_match(/there is no tls_domain/, rondo("cert", "renew").err)
    write "state", "a file"
    assert_complaint 1, /tls_storage: cannot write .*state.*: /, rondo("-q", *words(**away), env: environment)
  end
end
