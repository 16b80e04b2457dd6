# frozen_string_literal: true

# What a scanner says of a port with the usual words.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSScanTest < TLSCase
  CURVES = %w[secp256r1 secp384r1 secp521r1 x25519 x448].freeze
  CIPHERS = {
    "TLSv1.3" => %w[TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256],
    "TLSv1.2" => %w[ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305]
  }.freeze

  def setup
    skip "sslscan is not installed" unless system("command -v sslscan >/dev/null")
    super
  end

  def test_sslscan
    report = run_command("sslscan", "--no-colour", "127.0.0.1:#{secure.port}").out
    enabled = report.scan(/^((?:SSL|TLS)v[\d.]+) +(enabled|disabled)$/)
    assert_equal %w[disabled disabled disabled disabled enabled enabled], enabled.map(&:last), report
    assert_equal CIPHERS, report.scan(/^(?:Preferred|Accepted) +(\S+) +\d+ bits +(\S+)/).group_by(&:first).transform_values { |rows| rows.map(&:last) }
    assert_empty CURVES - report.scan(/^TLSv1.3 +\d+ bits +(\S+)/).flatten
    refute_match(/ffdhe/, report)
    assert_empty report.scan(/^.*(?<!not )vulnerable to.*$|^Compression enabled.*$/)
    ["Session renegotiation not supported", "TLSv1.2 not vulnerable to heartbleed", "TLSv1.3 not vulnerable to heartbleed",
     "Server supports TLS Fallback SCSV"].each { |line| assert_match(/^#{Regexp.escape(line)}$/, report) }
  end
end
