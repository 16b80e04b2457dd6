# frozen_string_literal: true

# The settings of fetched certificates, as the process that fetches gets them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "rondo"
require "rondo/certificates/domains"
require "rondo/config/settings"
require "tmpdir"

class CertificatesDomainsTest < Minitest::Test
  Domains = Rondo::Certificates::Domains

  def domains(**more)
    given = { tls_domain: %w[a.example.com b.example.com], tls_storage: "/s", **more }
    Domains.from(Rondo::Settings::Resolved.new(given.transform_values { |value| [value, "test"] }))
  end

  def test_none
    assert_nil domains(tls_domain: nil)
    assert_nil domains(tls_domain: [])
  end

  def test_what_the_settings_say
    found = domains(tls_email: "ops@example.com", tls_eab_kid: "kid")
    assert_equal [%w[a.example.com b.example.com], "ops@example.com", "kid", "/s", true],
                 [found.names, found.email, found.eab_kid, found.storage, found.agree]
    assert_equal "https://acme-v02.api.letsencrypt.org/directory", found.directory
    assert_equal %w[a.example.com], domains(tls_domain: %w[a.example.com a.example.com]).names
  end

  # It goes to another process as JSON, which may have another folder.
  def test_there_and_back
    Dir.mktmpdir do |folder|
      Dir.chdir(folder) do
        found = domains(tls_storage: "state", tls_directory_ca: "ca.pem", tls_eab_key_file: "key")
        text = JSON.generate(found.to_h)
        Dir.chdir("/") do
          again = Domains.new(**JSON.parse(text, symbolize_names: true))
          assert_equal found.to_h, again.to_h
          assert_equal %w[state ca.pem key].map { |name| File.join(File.realpath(folder), name) },
                       [again.storage, again.directory_ca, again.eab_key_file]
        end
      end
    end
  end

  def test_where_the_folder_is
    assert_equal "/var/lib/app/acme", Domains.default_storage({ "STATE_DIRECTORY" => "/var/lib/app:/var/lib/b" })
    assert_equal "/x/rondo/acme", Domains.default_storage({ "XDG_STATE_HOME" => "/x" })
  end

  def test_mistakes
    many = Array.new(101) { |number| "a#{number}.example.com" }
    { { tls_domain: many } => "tls_domain has 101 names; at most 100 are possible",
      { tls_directory: "http://a.example/dir" } => 'tls_directory must be an https:// URL, not "http://a.example/dir"',
      { tls_directory: "https:///dir" } => 'tls_directory must be an https:// URL, not "https:///dir"',
      { tls_directory: "no url" } => 'tls_directory must be an https:// URL, not "no url"' }.each do |values, words|
      assert_equal words, assert_raises(Rondo::ConfigurationError) { domains(**values) }.message
    end
    assert_equal 100, domains(tls_domain: many.first(100)).names.size
  end

  # ---- the key of an external account ----

  def test_it_is_in_a_file_or_in_the_environment
    assert_equal "abc", domains.eab_key({ Domains::EAB_KEY => " abc\n" })
    assert_nil domains.eab_key({})
    Dir.mktmpdir do |folder|
      path = File.join(folder, "key")
      found = domains(tls_eab_key_file: path)
      message = assert_raises(Rondo::Certificates::Failed) { found.eab_key({ Domains::EAB_KEY => "abc" }) }.message
      assert_equal "tls_eab_key_file #{path} does not exist", message
      File.write(path, "def\n")
      assert_equal "def", found.eab_key({ Domains::EAB_KEY => "abc" })
      refute_includes JSON.generate(found.to_h), "def"
      File.unlink(path)
      Dir.mkdir(path)
      assert_equal "cannot read #{path}: Is a directory", assert_raises(Rondo::Certificates::Failed) { found.eab_key({}) }.message
    end
  end
end
