# frozen_string_literal: true

# What is said of certificates that are served, and which of them should be better.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/certificates/facts"
require "stringio"
require "support/certificates"
require "tmpdir"

class CertificatesFactsTest < Minitest::Test
  Facts = Rondo::Certificates::Facts

  def setup
    @folder = Dir.mktmpdir
    @certificates = Certificates.new(@folder)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def shown(pair, chain = [])
    { certificate: [pair.certificate, *chain].map { |path| File.read(path) }.join, certificate_name: pair.certificate,
      key_name: pair.key }
  end

  def facts(pair, chain = [])
    File.chmod(0o600, pair.key)
    Facts.of({ "https://a" => [shown(pair, chain)] })["https://a"].first
  end

  def short(lines)
    lines.map { |line| line.gsub("#{@folder}/", "") }
  end

  def test_a_good_one
    good = facts(@certificates.pair("good"), [@certificates.authority])
    assert_equal %w[localhost 127.0.0.1], good.names
    assert_includes 29..30, good.days_left
    assert_match(/\Agood.pem: localhost, 127.0.0.1; (?:29|30) days left\z/, short([good.line]).first)
    assert_empty good.warnings
    assert_equal(-1, good.days_left(good.expires_at + 1))
    assert_equal 0, good.days_left(good.expires_at - 1)
  end

  def test_many_names
    line = facts(@certificates.pair("many", names: Array.new(9) { |n| "DNS:#{n}.test" })).line
    assert_includes line, ": 0.test, 1.test, 2.test, 3.test, … (9); "
  end

  def test_what_should_be_better
    soon = @certificates.pair("soon", days: -1..9)
    assert_match(/\Athe certificate in soon.pem expires on \d{4}-\d\d-\d\d\z/, short(facts(soon).warnings).first)
    bare = @certificates.pair("bare", names: [])
    assert_equal ["bare.pem has its name in the subject only, which browsers do not accept"], short(facts(bare).warnings)
    assert_equal ["bare"], facts(bare).names
    weak = @certificates.pair("weak", key: OpenSSL::PKey::RSA.new(1024))
    assert_equal ["the RSA key of weak.pem has 1024 bits; 2048 is the least that is safe"], short(facts(weak).warnings)
    other = @certificates.pair("other")
    assert_equal ["other.pem: certificate 2 has not signed the one before it"], short(facts(other, [soon.certificate]).warnings)
  end

  def test_a_key_that_others_can_read
    pair = @certificates.pair("open")
    found = facts(pair)
    { 0o600 => [], 0o640 => ["0640"], 0o604 => ["0604"] }.each do |mode, expected|
      File.chmod(mode, pair.key)
      assert_equal expected, found.warnings.map { |line| line[/open\.key\.pem can be read by others than its owner: mode (\d+)\z/, 1] }
    end
    assert_empty Facts.new(File.read(pair.certificate), "cert_pem", "key_pem").warnings
  end

  def test_the_log_is_told_of_what_ends_soon
    soon = shown(@certificates.pair("soon", days: -1..9))
    log = Rondo::Logger.new(io: out = StringIO.new)
    Facts.tell({ "https://a" => [soon], "https://b" => [soon, shown(@certificates.pair("good"))] }, log, nil)
    assert_equal 1, out.string.scan(/! the certificate in \S*soon.pem expires on/).size
    assert_equal 1, out.string.lines.size
  end
end
