# frozen_string_literal: true

# Where our own authority is put so that programs of this machine trust it, and what is printed instead.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/authority"
require "rondo/certificates/trust"
require "open3"
require "stringio"
require "tmpdir"

class CertificatesTrustTest < Minitest::Test
  def setup
    @root = Dir.mktmpdir
    @certificate = File.join(@root, "a b.pem")
    @home = File.join(@root, "home")
    FileUtils.mkdir_p([@home, File.join(@root, "usr/local/share/ca-certificates")])
    authority, = Rondo::Certificates::Authority.create
    File.write(@certificate, authority.certificate.to_pem)
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def said(print: false, **options)
    out = StringIO.new
    Rondo::Certificates::Trust.new(@certificate, out: out, root: @root, home: @home, **options).run(print: print)
    out.string
  end

  def database
    path = File.join(@home, ".pki/nssdb")
    [path, Open3.capture2e("certutil", "-d", "sql:#{path}", "-L").first]
  end

  def test_commands_are_printed
    text = said(print: true)
    target = "#{@root}/usr/local/share/ca-certificates/rondo-development.crt"
    assert_equal "Still to do:\n  sudo cp #{@root}/a\\ b.pem #{target}\n  sudo update-ca-certificates\n", text
    refute_path_exists target
  end

  def test_on_macos
    text = said(platform: "arm64-darwin23", print: true)
    assert_includes text, "security add-trusted-cert -r trustRoot -k #{@home}/Library/Keychains/login.keychain-db #{@root}/a\\ b.pem\n"
  end

  def test_a_system_that_is_unknown
    FileUtils.rm_rf(File.join(@root, "usr"))
    assert_match(/Still to do:\n  add .*a b\.pem to the authorities of this system/, said(print: true))
  end

  # update-ca-certificates would write into this machine: another program of that name is first in the path.
  def test_a_store_that_is_writable
    with_program("update-ca-certificates", "touch #{@root}/updated") do
      assert_match(/The system trusts it now: /, said)
    end
    assert_path_exists File.join(@root, "updated")
    assert_equal File.read(@certificate), File.read(File.join(@root, "usr/local/share/ca-certificates/rondo-development.crt"))
  end

  def test_a_command_that_fails_is_left_to_the_user
    with_program("update-ca-certificates", "exit 1") { assert_match(/Still to do:.*sudo update-ca-certificates/m, said) }
  end

  def test_databases_of_browsers
    with_program("update-ca-certificates", "exit 0") do
      2.times { assert_match(/Browsers with .*nssdb trust it now/, said) }
    end
    assert_equal 1, database.last.scan(/Rondo development authority +C,,/).size
  end

  def with_program(name, text)
    folder = File.join(@root, "bin")
    FileUtils.mkdir_p(folder)
    File.write(File.join(folder, name), "#!/bin/sh\n#{text}\n", perm: 0o755)
    path = ENV.fetch("PATH", nil)
    ENV["PATH"] = "#{folder}:#{path}"
    yield
  ensure
    ENV["PATH"] = path
  end
end
