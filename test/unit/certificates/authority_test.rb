# frozen_string_literal: true

# Our own authority: what it may sign, as OpenSSL judges it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/authority"

class CertificatesAuthorityTest < Minitest::Test
  Authority = Rondo::Certificates::Authority

  def setup
    @authority, @key = Authority.create
  end

  # @return [String] "ok", or why a client refuses it
  def judged(pem, authority = @authority)
    store = OpenSSL::X509::Store.new
    store.add_cert(authority.certificate)
    store.purpose = OpenSSL::X509::PURPOSE_SSL_SERVER
    store.verify(OpenSSL::X509::Certificate.new(pem))
    store.error_string
  end

  def test_what_it_may_sign
    assert_equal "ok", judged(@authority.issue(%w[localhost a.localhost b.c.test 127.0.0.1 127.9.9.9 ::1]))
    %w[example.com test.example localhost.example.com 10.0.0.1 128.0.0.1 ::2].each do |name|
      assert_match(/permitted subtree violation/, judged(@authority.issue([name])), name)
      refute Authority.may_sign?(name), name
    end
    %w[localhost a.localhost b.c.test 127.0.0.1 ::1].each { |name| assert Authority.may_sign?(name), name }
  end

  def test_a_certificate
    pem = @authority.issue(%w[app.test localhost])
    leaf = OpenSSL::X509::Certificate.new(pem)
    assert leaf.check_private_key(OpenSSL::PKey.read(pem))
    assert_operator leaf.not_after - leaf.not_before, :<=, 397 * 86_400
    assert_operator leaf.not_before, :<=, Time.now
    assert_equal 2, leaf.version
    refute_equal leaf.serial, OpenSSL::X509::Certificate.new(@authority.issue(%w[localhost])).serial
    assert_equal %w[app.test localhost], leaf.extensions.find { |each| each.oid == "subjectAltName" }.value.scan(/DNS:([\w.]+)/).flatten
  end

  def test_it_signs_no_authority
    other, = Authority.create
    refute_equal "ok", judged(other.certificate.to_pem)
    assert_match(/pathlen:0/, @authority.certificate.extensions.find { |each| each.oid == "basicConstraints" }.value)
  end

  def test_loading
    loaded = Authority.load(@authority.certificate.to_pem, @key)
    assert_equal "ok", judged(loaded.issue(%w[localhost]))
    _, other = Authority.create
    error = assert_raises(Rondo::Certificates::Failed) { Authority.load(@authority.certificate.to_pem, other) }
    assert_match(/do not belong together/, error.message)
    assert_raises(Rondo::Certificates::Failed) { Authority.load("", @key) }
    assert_raises(Rondo::Certificates::Failed) { Authority.load(@authority.certificate.to_pem, "") }
  end

  def test_it_does_not_show_its_key
    refute_match(/PKey|PRIVATE/, @authority.inspect)
  end

  def test_how_long_it_lives
    assert @authority.good_for?(397)
    refute @authority.good_for?(4000)
  end
end
