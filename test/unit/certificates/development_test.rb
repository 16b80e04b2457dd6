# frozen_string_literal: true

# Which certificate an address without one gets: of the gem localhost, of mkcert's authority, of our own.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/development"
require "support/certificates"
require "tmpdir"

class CertificatesDevelopmentTest < Minitest::Test
  include Rondo::Certificates

  def setup
    @root = Dir.mktmpdir
    @env = { "XDG_STATE_HOME" => File.join(@root, "state"), "XDG_DATA_HOME" => File.join(@root, "data") }
    @development = Rondo::Certificates::Development.new(@env)
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def leaf(found)
    OpenSSL::X509::Certificate.new(File.read(found.cert))
  end

  def names(found)
    leaf(found).extensions.find { |each| each.oid == "subjectAltName" }.value
  end

  # As mkcert has its folder, with the authority of the tests.
  def mkcert(path)
    FileUtils.mkdir_p(path)
    authority, key = Authority.create
    File.write(File.join(path, "rootCA.pem"), authority.certificate.to_pem)
    File.write(File.join(path, "rootCA-key.pem"), key)
    authority.certificate
  end

  def test_our_own
    found = @development.find("localhost")
    assert_match(/\Aby #{@development.own_authority}; browsers trust it after `rondo cert trust`\z/, found.line)
    authority = OpenSSL::X509::Certificate.new(File.read(@development.own_authority))
    assert leaf(found).verify(authority.public_key)
    assert_match(/\ADNS:localhost, IP Address:127\.0\.0\.1, IP Address:0:0:0:0:0:0:0:1\z/, names(found))
    folder = File.dirname(@development.own_authority)
    modes = [folder, File.join(folder, "ca-key.pem"), found.key].map { |path| File.stat(path).mode & 0o777 }
    assert_equal [0o700, 0o600, 0o600], modes
  end

  def test_it_is_used_again
    first = leaf(@development.find("127.0.0.1")).serial
    assert_equal first, leaf(Rondo::Certificates::Development.new(@env).find("127.0.0.1")).serial
    assert_equal leaf(@development.find("0.0.0.0")).serial, leaf(@development.find("::")).serial
  end

  def test_other_names
    assert_match(/\ADNS:app\.test, DNS:localhost, /, names(@development.find("App.test.")))
    assert_match(/\ADNS:a\.b\.localhost, /, names(@development.find("a.b.localhost")))
    error = assert_raises(Failed) { @development.find("app.example.com") }
    assert_match(/\Acert is missing; Rondo makes certificates for localhost, /, error.message)
  end

  def test_a_certificate_near_its_end_is_replaced
    found = @development.find("localhost")
    old = leaf(found)
    authority = Authority.load(File.read(@development.own_authority), File.read(File.join(File.dirname(found.cert), "ca-key.pem")))
    key = OpenSSL::PKey::EC.generate("prime256v1")
    short = Authority.blank(key, 29)
    short.subject = old.subject
    short.issuer = old.issuer
    short.add_extension(old.extensions.find { |each| each.oid == "subjectAltName" })
    File.write(found.cert, short.sign(authority.instance_variable_get(:@key), "SHA256").to_pem + key.private_to_pem)
    assert_operator leaf(@development.find("localhost")).not_after, :>, short.not_after
  end

  def test_an_authority_that_cannot_be_used_is_replaced
    found = @development.find("localhost")
    File.write(File.join(File.dirname(found.cert), "ca-key.pem"), "")
    again = leaf(@development.find("localhost"))
    assert again.verify(OpenSSL::X509::Certificate.new(File.read(@development.own_authority)).public_key)
  end

  def test_mkcert
    [-> { @env["CAROOT"] = File.join(@root, "elsewhere") }, -> { File.join(@root, "data/mkcert") }].each do |place|
      root = mkcert(place.call)
      found = @development.find("localhost")
      assert_match(/\Aby mkcert's authority in .*; browsers trust it after `mkcert -install`\z/, found.line)
      assert leaf(found).verify(root.public_key)
      @env.delete("CAROOT")
    end
    refute_path_exists @development.own_authority
  end

  def test_mkcert_without_its_key
    mkcert(File.join(@root, "data/mkcert"))
    File.delete(File.join(@root, "data/mkcert/rootCA-key.pem"))
    assert_match(/rondo cert trust/, @development.find("localhost").line)
  end

  def test_the_gem
    folder = File.join(@root, "state/localhost.rb")
    FileUtils.mkdir_p(folder)
    pair = ::Certificates.new(@root).pair("x", names: %w[DNS:localhost], days: -1..60)
    FileUtils.mv(pair.certificate, File.join(folder, "localhost.crt"))
    FileUtils.mv(pair.key, File.join(folder, "localhost.key"))
    mkcert(File.join(@root, "data/mkcert"))
    found = @development.find("localhost")
    assert_equal [File.join(folder, "localhost.crt"), File.join(folder, "localhost.key")], [found.cert, found.key]
    assert_match(/\Aof the gem localhost, /, found.line)
    refute_match(/gem/, @development.find("app.test").line)
  end

  def test_two_processes_make_one_authority
    pids = []
    serials = Array.new(4) do
      reader, writer = IO.pipe
      pids << fork do
        writer.write(Rondo::Certificates::Development.new(@env).authority.certificate.serial.to_s)
        exit!(0)
      end
      writer.close
      reader
    end.map(&:read)
    pids.each { |pid| Process.wait(pid) }
    assert_equal 1, serials.uniq.size, serials
  end
end
