# frozen_string_literal: true

# What scanners say of a port with the usual words. testssl.sh takes half a minute: RONDO_TEST_SCANS=1 runs it.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "json"

class TLSScanTest < TLSCase
  CURVES = %w[secp256r1 secp384r1 secp521r1 x25519 x448].freeze
  CIPHERS = {
    "TLSv1.3" => %w[TLS_AES_128_GCM_SHA256 TLS_AES_256_GCM_SHA384 TLS_CHACHA20_POLY1305_SHA256],
    "TLSv1.2" => %w[ECDHE-ECDSA-AES128-GCM-SHA256 ECDHE-ECDSA-AES256-GCM-SHA384 ECDHE-ECDSA-CHACHA20-POLY1305]
  }.freeze

  WORRIES = %w[LOW MEDIUM HIGH CRITICAL FATAL WARN].freeze

  def need(name)
    skip "#{name} is not installed" unless system("command -v #{name} >/dev/null")
  end

  def test_sslscan
    need "sslscan"
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

  # Versions, ciphers, key exchange, and the attacks that have names.
  if ENV["RONDO_TEST_SCANS"]
    def test_testssl
      need "testssl"
      said, status = Open3.capture2e("timeout", "600", "testssl", "--quiet", "--color", "0", "--warnings", "off", "--openssl", "/usr/bin/openssl",
                                     "-p", "-s", "-f", "-U", "--jsonfile", "scan.json", "127.0.0.1:#{secure.port}", chdir: @folder)
      findings = JSON.parse(read("scan.json")).reject { |one| one["id"] == "engine_problem" } # of the scanner's own OpenSSL
      assert_empty findings.select { |one| WORRIES.include?(one["severity"]) }, said
      assert_equal 0, status.exitstatus, said
      assert_empty %w[heartbleed secure_client_renego CRIME_TLS TLS1_3] - findings.map { |one| one["id"] }
    end
  end
end
