# frozen_string_literal: true

# A round over all names, and the order of one certificate (order.rb), with a server that refuses, wants to be left
# alone, or is broken.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/renewal"
require "support/acme_server"
require "tmpdir"

class CertificatesRenewalTest < Minitest::Test
  Renewal = Rondo::Certificates::Renewal
  Store = Rondo::Certificates::Store
  NAMES = %w[a.example.com b.example.com].freeze

  def setup
    @root = Dir.mktmpdir
    @acme = AcmeServer.new(@root)
    @said = []
  end

  def teardown
    @acme.close
    FileUtils.rm_rf(@root)
  end

  def renewal(names: NAMES.first(1), **fields)
    given = { names: names, directory: @acme.directory, directory_ca: @acme.authority, agree: true, storage: File.join(@root, "acme") }
    domains = Rondo::Certificates::Domains.new(**given, **fields)
    @store = Store.new(domains.storage)
    Renewal.new(domains, ->(line, good) { @said << [good, line] })
  end

  def run_it(patient: true, all: false, wait: false, **options)
    renewal(**options).run(patient: patient, all: all, wait: wait)
  end

  # @return [String] the only line since the last call, which is bad news
  def complaint
    assert_equal [false], @said.map(&:first), @said.inspect
    @said.slice!(0..).first.last
  end

  def delay
    Integer(complaint[/next try in (\d+) s\z/, 1])
  end

  def test_a_certificate
    assert run_it
    not_after = OpenSSL::X509::Certificate.new(File.read(@store.path(NAMES[0]))).not_after
    assert_in_delta Time.now + (90 * 86_400), not_after, 60
    assert_equal [[true, "certificate for #{NAMES[0]} until #{not_after.utc.strftime("%F")}"]],
                 (@said.map { |good, line| [good, line.sub(/ \d\d:\d\d UTC\z/, "")] })
    assert_predicate @store.state(NAMES[0]), :good?
    assert_equal %w[dir account new authz order finalize cert], @acme.asked.uniq
    @acme.asked.clear
    assert run_it # nothing is due
    assert_empty @acme.asked
  end

  def test_a_name_that_fails_holds_up_no_other_one
    @acme.refuse("new", "rejectedIdentifier", "not this one")
    refute run_it(names: NAMES)
    assert_equal "no certificate for a.example.com: the server refuses: not this one; next try in",
                 @said[0].last[/\A.* in/]
    assert_match(/\Acertificate for b\.example\.com until/, @said[1].last)
    assert_equal [1, 0], (NAMES.map { |name| @store.state(name).failures })
  end

  def test_it_waits_unless_somebody_is_impatient
    @acme.refuse("new", "rejectedIdentifier", "no")
    refute run_it
    @acme.asked.clear
    refute run_it
    assert_empty @acme.asked
    assert run_it(patient: false)
    assert_equal 0, @store.state(NAMES[0]).failures
  end

  def test_all_of_them
    run_it(names: NAMES)
    @acme.asked.clear
    run_it(names: NAMES, all: true)
    assert_equal 2, @acme.asked.count("finalize")
  end

  # ---- what the server wishes for ----

  def limited(value)
    @acme.refuse("new", "rateLimited", "too many", status: 429, retry_after: value)
    run_it(patient: false)
    delay
  end

  def test_seconds
    assert_equal 7000, limited("7000")
    assert_equal 7 * 86_400, limited("99999999999")
    assert_operator limited("0"), :>, 180
    assert_operator limited("nonsense"), :>, 380
  end

  def test_a_date
    assert_in_delta 7000, limited((Time.now + 7000).httpdate), 60
    assert_equal 7 * 86_400, limited("Fri, 31 Dec 9999 23:59:59 GMT")
    assert_operator limited("Sun, 06 Nov 1994 08:49:37 GMT"), :>, 180
  end

  # At the account already: no name is tried.
  def test_a_server_that_has_no_time
    @acme.answer("dir", 503, "<html>", retry_after: "4000")
    refute run_it(names: NAMES)
    assert_match(/\Ano certificate for a\.example\.com, b\.example\.com: /, @said[0].last)
    assert_equal 4000, delay
    assert_equal [1, 1], (NAMES.map { |name| @store.state(name).failures })
    assert_equal ["dir"], @acme.asked
  end

  def test_a_decision_that_takes_longer_than_anybody_waits
    ["4000", (Time.now + 4000).httpdate].each do |time|
      @acme.asked.clear
      @acme.answer("order", 200, @acme.order("pending"), retry_after: time)
      run_it(patient: false)
      assert_match(/: the server did not decide within 300 s; /, @said[0].last)
      assert_in_delta 4000, delay, 60
      assert_equal 1, @acme.asked.count("order")
    end
  end

  # ---- servers that are broken ----

  def test_certificates_that_are_none
    other = Certificates.new(@root).pair("other", names: ["DNS:#{NAMES[0]}"])
    { "" => "no certificate", "<html>" => "no certificate",
      File.read(other.certificate) => "a certificate of another key" }.each do |text, words|
      @acme.answer("cert", 200, text, content_type: "application/pem-certificate-chain")
      refute run_it(patient: false)
      assert_match(/: the server sent #{words}; next try/, complaint)
      assert_nil @store.state(NAMES[0]).certificate
    end
  end

  def test_an_order_that_fails
    @acme.answer("order", 200, { **@acme.order("invalid"), error: { detail: "two\nlines\e[31m#{"x" * 1000}" } })
    refute run_it
    words = complaint
    assert_match(/: the order is invalid: two lines/, words)
    assert_operator words.bytesize, :<, 600
  end

  def test_an_authorization_without_http
    @acme.answer("authz", 200, { status: "pending", identifier: { type: "dns", value: NAMES[0] }, challenges: [] })
    refute run_it
    assert_match(/: the server offers no proof by port 80/, complaint)
  end

  def test_answers_that_are_none
    [[200, "no json"], [500, "<html>"], [404, ""], [200, { a: 1 }]].each do |status, body|
      @acme.answer("dir", status, body)
      refute run_it(patient: false)
      assert_match(/\Ano certificate for \S+: .*; next try in \d+ s\z/, complaint, body.inspect)
    end
  end

  # RFC 8555, section 7.1.1: every part of meta is optional, and so is meta.
  def test_a_directory_without_meta
    kinds = AcmeServer::KINDS.transform_values { |kind| @acme.directory.sub(/dir\z/, kind) }
    @acme.answer("dir", 200, kinds)
    assert run_it
  end

  def test_an_authority_that_is_not_trusted
    refute run_it(directory_ca: Certificates.new(@root, "another").authority)
    assert_match(/: 127\.0\.0\.1 cannot be reached: .*certificate verify failed/, complaint)
  end

  def test_a_server_that_is_away
    refute run_it(names: NAMES, directory: "https://127.0.0.1:1/dir")
    assert_match(/\Ano certificate for a\.example\.com, b\.example\.com: 127\.0\.0\.1 (?:does not answer|cannot be reached)/, complaint)
  end

  # ---- the folder ----

  # What cannot be kept is not ordered: the server would count it.
  def test_a_disk_that_is_full
    run_it
    before = File.binread(@store.path(NAMES[0]))
    @acme.asked.clear
    pid = fork do
      trap("XFSZ", "IGNORE")
      Process.setrlimit(:FSIZE, 1000)
      run_it(all: true)
      exit!(0)
    end
    Process.wait(pid)
    assert_empty @acme.asked
    assert_equal before, File.binread(@store.path(NAMES[0]))
    assert_empty Dir[File.join(@root, "acme/**/*.new")]
    assert_equal 1, @store.state(NAMES[0]).failures
  end

  def test_two_processes_with_one_folder
    inner, outer = IO.pipe, IO.pipe
    renewal
    pid = fork do
      @store.folder.locked { inner[1].write(".") && outer[0].read(1) }
      exit!(0)
    end
    inner[0].read(1)
    refute run_it
    assert_equal [[true, "another process is renewing in #{@store.folder.path}"]], @said.slice!(0..)
    assert_empty @acme.asked
    outer[1].write(".")
    assert run_it(wait: true)
  ensure
    Process.wait(pid)
  end

  def test_two_at_once_order_once
    pids = Array.new(3) { fork { exit!(run_it(wait: true)) } }
    codes = pids.map { |each| Process.wait2(each).last.exitstatus }
    assert_equal [[0, 0, 0], 1], [codes, @acme.asked.count("finalize")]
  end

  def test_a_folder_that_others_can_change
    renewal.run
    File.chmod(0o777, @store.folder.path)
    error = assert_raises(Rondo::Certificates::Failed) { renewal.run(all: true) }
    assert_match(/can be changed by others\z/, error.message)
  end
end
