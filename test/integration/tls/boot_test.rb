# frozen_string_literal: true

# What cannot be served with TLS is one line, and exit code 1. All the reasons: test/unit/config/tls_test.rb.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSBootTest < TLSCase
  def test_a_certificate_that_has_expired
    late = @certificates.pair("late", days: -9..-2)
    assert_complaint(1, %r{\Arondo: cannot listen on ssl://127.0.0.1:0: the certificate in \S*late.pem expired on [\d-]+$},
                     rondo("-b", "ssl://127.0.0.1:0?#{late.query}"))
  end

  def test_words_of_iodine
    server = start("-tls", "-cert", @pair.certificate, "-key", @pair.key, "-p", "0", binds: [], deadline: PATIENCE)
    port = server.wait_for_log(%r{^\* Listening on https://\S+:(\d+)$})[1]
    words = ["--cacert", @certificates.authority, "--resolve", "localhost:#{port}:127.0.0.1"]
    assert_equal "https on #{port}", run_command("curl", "-sS", *words, "https://localhost:#{port}/").out
    assert_complaint(1, /are about --port/, rondo("-tls", "-b", "tcp://127.0.0.1:0"))
    assert_complaint(1, %r{ssl://\S*: key is missing}, rondo("-cert", @pair.certificate, "-p", "0"))
    assert_complaint(1, /cert is missing, and the environment is production/, rondo("-tls", "-p", "0", "-e", "production"))
  end

  def test_a_key_that_cannot_be_read
    File.chmod(0o755, @folder)
    File.chmod(0o600, @pair.key)
    assert_complaint(1, /server.key.pem: Permission denied$/, powerless("-b", "ssl://127.0.0.1:0?#{@pair.query}"))
  end

  def test_a_port_without_the_right
    skip "everybody may use this port here" if File.read("/proc/sys/net/ipv4/ip_unprivileged_port_start").to_i < 444
    File.chmod(0o755, @folder)
    File.chmod(0o644, @pair.key)
    assert_complaint(1, /: permission denied: a port below 1024 needs the capability/i,
                     powerless("-b", "ssl://127.0.0.1:443?#{@pair.query}"))
  end
end
