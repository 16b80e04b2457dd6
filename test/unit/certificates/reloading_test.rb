# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/reloading"
require "support/certificates"
require "tmpdir"

class ReloadingTest < Minitest::Test
  def setup
    @folder = Dir.mktmpdir("rondo-reloading")
    @certificates = Certificates.new(@folder)
    @pair = @certificates.pair("first")
    @lines = StringIO.new
    @taken = []
    @log = Rondo::Logger.new(io: @lines)
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def reloading(*queries, **options)
    uris = queries.map.with_index { |query, index| "ssl://127.0.0.1:#{index + 1}?#{query}" }
    Rondo::Certificates::Reloading.new(["tcp://127.0.0.1:9", *uris], @log, **options) { |found| @taken << found }
  end

  # @return [Array<String>] since the last call
  def lines
    @lines.string.split("\n").tap { @lines.truncate(@lines.rewind) }
  end

  def replace(pair, certificate: true, key: true)
    File.rename(pair.certificate, @pair.certificate) if certificate
    File.rename(pair.key, @pair.key) if key
  end

  def test_nothing_without_tls
    refute_predicate reloading, :any?
    refute reloading.request
    reloading.pass(all: true)
    assert_empty @taken
  end

  def test_a_file_that_changes
    watched = reloading(@pair.query)
    watched.pass
    assert_empty @taken
    replace(@certificates.pair("second", days: -1..7))
    watched.pass
    watched.pass
    assert_equal File.read(@pair.certificate), @taken.dig(0, 0, :certificates, 0, :certificate)
    assert_equal 1, @taken.size
    certificate = OpenSSL::X509::Certificate.new(File.read(@pair.certificate))
    assert_equal ["- Certificates reloaded: localhost until #{certificate.not_after.utc.strftime("%F")}"], lines
  end

  def test_all_of_them_when_asked
    other = @certificates.pair("other", names: %w[DNS:other.test])
    watched = reloading(@pair.query, other.query, @pair.query)
    watched.pass(all: true)
    assert_equal 2, @taken.first.size # addresses with the same words share one
    assert_match(/: localhost until \S+, other\.test until \S+\z/, lines.first)
  end

  def test_half_a_pair_is_one_line_until_the_files_change_again
    watched = reloading(@pair.query)
    second = @certificates.pair("second")
    replace(second, key: false)
    3.times { watched.pass }
    assert_equal ["! Certificates of ssl://127.0.0.1:1 stay as they are: #{@pair.key} is not the key of " \
                  "#{@pair.certificate}"], lines
    replace(second, certificate: false)
    watched.pass
    assert_match(/reloaded/, lines.first)
    assert_equal 1, @taken.size
  end

  def test_a_file_that_is_not_there_for_a_while
    watched = reloading(@pair.query)
    File.rename(@pair.key, "#{@pair.key}.old")
    2.times { watched.pass }
    assert_equal ["! Certificates of ssl://127.0.0.1:1 stay as they are: #{@pair.key}: No such file or directory"], lines
    File.rename("#{@pair.key}.old", @pair.key)
    watched.pass
    assert_match(/reloaded/, lines.first)
  end

  def test_the_authority_of_clients_is_watched_too
    authority = File.join(@folder, "clients.pem")
    File.write(authority, File.read(@certificates.authority))
    watched = reloading("#{@pair.query}&verify_mode=peer&ca=#{authority}")
    File.write("#{authority}.new", "")
    File.rename("#{authority}.new", authority)
    watched.pass
    assert_match(/stay as they are: #{authority}: it has no certificate/, lines.first)
  end

  # One name that cannot be renewed lets those beside it expire, if it holds them up.
  def test_awaited_files_do_not_wait_for_each_other
    files = %w[one two].map { |name| File.join(@folder, "#{name}.both.pem") }
    files.each { |path| File.write(path, File.read(@pair.certificate) + File.read(@pair.key)) }
    watched = reloading(Rondo::TLS.query({ awaits: "files", certs: files.map { |path| { cert: path, key: path } } }))
    File.write(files[0], "half")
    watched.pass
    assert_equal [[files[1]]], @taken.map { |found| found[0][:certificates].map { |pair| pair[:certificate_name] } }
    assert_equal "! Not shown on ssl://127.0.0.1:1: #{files[0]} has no certificate", lines.first
    File.write(files[1], "half")
    watched.pass
    assert_equal [1, 2], [@taken.size, lines.size] # there is nothing to show
  end

  def test_the_thread_looks_and_can_be_asked
    queue = Thread::Queue.new
    uri = "ssl://127.0.0.1:1?#{@pair.query}"
    watched = Rondo::Certificates::Reloading.new([uri], @log, period: 0.01) { |found| queue << found }
    watched.start
    assert watched.request
    assert_equal 1, queue.pop.size
    replace(@certificates.pair("second"))
    assert_equal 1, queue.pop.size
  end
end
