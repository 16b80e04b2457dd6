# frozen_string_literal: true

# When a certificate is due, how long a failure is remembered, and what becomes of files that are damaged.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/store"
require "support/certificates"
require "tmpdir"

class CertificatesStoreTest < Minitest::Test
  Store = Rondo::Certificates::Store
  Failed = Rondo::Certificates::Failed
  NAME = "app.example.com"
  DAY = 86_400

  def setup
    @root = Dir.mktmpdir
    @store = Store.new(File.join(@root, "acme"))
    @certificates = Certificates.new(@root)
  end

  def teardown
    FileUtils.rm_rf(@root)
  end

  def keep(days, name = NAME)
    pair = @certificates.pair(name, names: ["DNS:#{name}"], days: days)
    @store.keep(name, File.read(pair.certificate), File.read(pair.key))
  end

  def state
    @store.state(NAME)
  end

  def assert_days(expected, moment)
    assert_in_delta expected * DAY, moment - Time.now, 60
  end

  # ---- when it is due ----

  def test_what_is_not_there_is_due
    assert_nil state.certificate
    refute_predicate state, :good?
    assert_operator state.due_at, :<, Time.now
  end

  def test_it_is_due_when_a_third_of_its_life_is_left
    keep(-30..60)
    assert_days 30, state.due_at
    assert_predicate state, :good?
    keep(-80..10)
    assert_days(-20, state.due_at)
    keep(-1..6) # a week
    assert_days 6 - (7 / 3.0), state.due_at
    keep(-20..-1)
    refute_predicate state, :good?
    assert_operator state.due_at, :<, Time.now
  end

  def test_a_file_is_for_its_owner_alone_and_has_chain_and_key
    umask = File.umask(0)
    keep(-1..9)
    assert_equal [0o600, 0o700, 0o700], [@store.path(NAME), File.dirname(@store.path(NAME)), @store.folder.path].map { |path|
      File.stat(path).mode & 0o777
    }
    text = File.read(@store.path(NAME))
    assert OpenSSL::X509::Certificate.new(text).check_private_key(OpenSSL::PKey.read(text[/-+BEGIN \w*\s?PRIVATE.*/m]))
  ensure
    File.umask(umask)
  end

  # A server cannot show these: they are fetched again, whenever they end.
  def test_damaged_files_are_due
    keep(-30..60)
    whole = File.read(@store.path(NAME))
    other = OpenSSL::PKey::EC.generate("prime256v1").private_to_pem
    [whole[0..-60], whole[0, 300], whole[/\A.*END CERTIFICATE-----\n/m], "", "\xff\x00", whole.sub(/-----BEGIN P.*/m, other)].each do |text|
      File.write(@store.path(NAME), text)
      assert_nil state.certificate, text
      assert_operator state.due_at, :<, Time.now
    end
    File.write(@store.path(NAME), whole)
    assert state.certificate
    File.unlink(@store.path(NAME))
    Dir.mkdir(@store.path(NAME))
    assert_nil state.certificate
  end

  # ---- failures ----

  def test_each_failure_in_a_row_doubles_the_delay
    delays = Array.new(12) { @store.failed(NAME, "no") }
    delays.each_with_index do |delay, number|
      usual = [60 * (2**number), 6 * 3600].min
      assert_includes (usual * 0.8)..((usual * 1.2) + 1), delay
      assert_equal delay, delay.to_i
    end
    assert_equal [12, "no"], [state.failures, state.error]
    assert_in_delta delays.last, state.next_try - Time.now, 60
    assert_equal state.next_try, state.due_at
  end

  # Servers that have failed together do not come back together.
  def test_delays_differ
    delays = Array.new(20) { |number| @store.failed("#{number}.example.com", "no") }
    assert_operator delays.uniq.size, :>, 3
  end

  def test_a_success_begins_anew
    3.times { @store.failed(NAME, "no") }
    @store.succeeded(NAME)
    assert_equal [0, nil, nil], [state.failures, state.error, state.next_try]
    assert_operator @store.failed(NAME, "no"), :<=, 73
    @store.succeeded("other.example.com") # there is nothing to forget
  end

  def test_a_name_has_delays_of_its_own
    @store.failed(NAME, "no")
    assert_nil @store.state("other.example.com").next_try
  end

  def test_a_certificate_that_is_good_waits_for_its_delay_too
    keep(-80..10)
    @store.failed(NAME, "no")
    assert_operator state.due_at, :>, Time.now
    assert_predicate state, :good?
  end

  def test_what_the_server_wishes_for_is_longer_than_the_usual_delay_or_nothing
    assert_equal 7200, @store.failed(NAME, "no", 7200)
    assert_operator @store.failed(NAME, "no", 1), :>, 90
    assert_operator @store.failed(NAME, "no", -5), :>, 180
    assert_equal 7 * DAY, @store.failed(NAME, "no", 10**12)
    assert_equal 7 * DAY, @store.failed(NAME, "no", Float::INFINITY)
    assert_days 7, state.due_at
  end

  # ---- what is remembered, damaged ----

  def remembered
    File.join(@root, "acme/tries/#{NAME}.json")
  end

  def test_damaged_memories_are_none
    @store.failed(NAME, "no")
    whole = File.read(remembered)
    [whole[0..-2], whole[0, 5], "", "null", "[1]", "7", "\xff\xfe", "[" * 1000, '{"next":{},"failures":[],"error":{"a":1},"delay":"x"}',
     '{"next":1e400,"failures":1e400}', '{"next":-5,"delay":1}'].each do |text|
      File.write(remembered, text)
      assert_nil state.next_try, text
      assert_equal 0, state.failures, text
      assert_operator @store.failed(NAME, "no"), :<=, 73, text
    end
    File.write(remembered, %({"failures":#{10**30},"next":#{Time.now.to_i + 5},"delay":5}))
    assert_operator @store.failed(NAME, "no"), :<=, 6 * 3600 * 1.2
  end

  # A clock that was years ahead, and then was set, must not end renewals for years.
  def test_a_delay_of_a_clock_that_was_wrong_is_over
    File.write(remembered.tap { |path| FileUtils.mkdir_p(File.dirname(path)) }, JSON.generate(failures: 3, next: Time.now.to_i + (900 * DAY), delay: 480))
    assert_nil state.next_try
    assert_operator state.due_at, :<, Time.now
    assert_includes 380..580, @store.failed(NAME, "no")
    File.write(remembered, JSON.generate(failures: 3, next: Time.now.to_i - (900 * DAY), delay: 480))
    assert_operator state.due_at, :<, Time.now
    File.write(remembered, JSON.generate(failures: 3, next: Time.now.to_i + (7 * DAY) + 3600)) # of an earlier version
    assert_equal [3, nil], [state.failures, state.next_try]
    File.write(remembered, JSON.generate(failures: 3, next: Time.now.to_i + (6 * DAY)))
    assert_days 6, state.due_at
  end

  def test_a_certificate_from_the_future_is_not_good_and_not_due
    keep(5..95)
    refute_predicate state, :good?
    assert_days 65, state.due_at
  end

  # ---- accounts and tokens ----

  def test_an_account_for_each_server
    key = @store.account_key("https://a.example/dir")
    assert_equal key.to_der, @store.account_key("https://a.example/dir").to_der
    refute_equal key.to_der, @store.account_key("https://b.example/dir").to_der
    files = Dir[File.join(@root, "acme/accounts/*")]
    assert_equal [0o600] * 2, files.map { |path| File.stat(path).mode & 0o777 }
    File.write(files.first, "half")
    words = assert_raises(Failed) { %w[a b].each { |name| @store.account_key("https://#{name}.example/dir") } }.message
    assert_match(/\Acannot read #{files.first}: /, words)
    assert_equal "half", File.read(files.first)
  end

  def test_a_token_is_there_while_it_is_shown
    folder = File.join(@store.webroot, ".well-known/acme-challenge")
    @store.showing("a_token-1", "answer") do
      assert_equal "answer", File.read(File.join(folder, "a_token-1"))
      assert_equal 0o644, File.stat(File.join(folder, "a_token-1")).mode & 0o777
    end
    assert_raises(Interrupt) { @store.showing("a_token-1", "answer") { raise Interrupt } }
    assert_empty Dir.children(folder)
  end

  def test_a_token_that_is_a_path_is_none
    File.write(File.join(@root, "precious"), "x")
    ["../../../../precious", "", "a/b", "a\nb", "a" * 129, "a.b"].each do |token|
      error = assert_raises(Failed) { @store.showing(token, "y") { flunk } }
      assert_equal "the server named a token that is none", error.message
    end
    assert_equal "x", File.read(File.join(@root, "precious"))
  end

  def test_room
    @store.check_room
    assert_empty Dir.children(File.join(@root, "acme"))
    File.chmod(0o777, File.join(@root, "acme"))
    assert_match(/can be changed by others/, assert_raises(Failed) { @store.check_room }.message)
  end
end
