# frozen_string_literal: true

# Signed names of channels: what is signed and what is not, several secrets, and the same construction as Turbo's, with
# the real gem.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/config/configuration"
require "active_support"
require "active_support/core_ext/time"
require "active_support/message_verifier"
require "minitest/mock"
require "open3"

class SignedTest < Minitest::Test
  SECRET = "a secret of the tests"
  OLD = "an old one of the tests"
  NAMES = ["room:1", "a", "Zürich ☃", "a\"b\\c", "\n", "<>&?~", "a" * 1024, "ü" * 512, "\u0001" * 1024].freeze

  def setup
    @before = ENV.fetch(Rondo::Signed::VARIABLE, nil)
    ENV.delete(Rondo::Signed::VARIABLE)
    Rondo::Signed.secrets = SECRET
    @verifier = ActiveSupport::MessageVerifier.new(SECRET, digest: "SHA256", serializer: JSON)
  end

  def teardown
    ENV[Rondo::Signed::VARIABLE] = @before
    Rondo::Signed.secrets = nil
    Rondo::PubSub.log = nil
    Metadata.use_message_serializer_for_metadata = @serializer if defined?(@serializer)
  end

  Metadata = ActiveSupport::Messages::Metadata

  def test_names_come_back
    NAMES.each { |name| assert_equal name, verified(signed(name)), name.inspect }
    assert_equal "room", verified(signed(:room))
    NAMES.each { |name| assert_equal name, verified(signed(name, expires_in: 3600)), name.inspect }
  end

  # The real gem, whose engine needs Rails: in a process of its own.
  TURBO = <<~RUBY
    require "rails"
    require "active_support/core_ext/time"
    require "action_controller/railtie"
    require "turbo-rails"
    require "rondo"
    Rondo::Signed.secrets = Turbo.signed_stream_verifier_key = ARGV.first
    ["room:1", "Zürich ☃", "<>&?~", "a" * 1024].each do |name|
      abort name unless Turbo.signed_stream_verifier.generate(name) == Rondo::Signed.channel(name)
      abort name unless Turbo.signed_stream_verifier.verified(Rondo::Signed.channel(name, expires_in: 60)) == name
      abort name unless Rondo::Signed.verified(Turbo.signed_stream_verifier.generate(name, expires_in: 60)) == name
    end
    puts "the same"
  RUBY

  def test_the_gem_reads_ours_and_we_read_its
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{File.expand_path("../../../lib", __dir__)}", "-e", TURBO, SECRET)
    assert status.success?, output
    assert_equal "the same\n", output
  end

  def test_a_verifier_reads_ours_and_we_read_its
    NAMES.each do |name|
      assert_equal name, @verifier.verified(signed(name))
      assert_equal name, @verifier.verified(signed(name, expires_in: 60))
      assert_equal name, verified(@verifier.generate(name))
    end
    assert_equal @verifier.generate("room:1"), signed("room:1")
  end

  # Rails 7.1 and newer writes the second form where load_defaults says so.
  def test_both_forms_of_an_expiry
    @serializer = Metadata.use_message_serializer_for_metadata
    [false, true].each do |own|
      Metadata.use_message_serializer_for_metadata = own
      assert_equal "room:1", verified(@verifier.generate("room:1", expires_in: 60))
      assert_nil verified(@verifier.generate("room:1", expires_in: -1))
      assert_nil verified(@verifier.generate("room:1", expires_in: 60, purpose: "login"))
      assert_equal "room:1", @verifier.verified(signed("room:1", expires_in: 60))
    end
  end

  def test_base64_for_urls
    safe = ActiveSupport::MessageVerifier.new(SECRET, digest: "SHA256", serializer: JSON, url_safe: true)
    NAMES.each { |name| assert_equal name, verified(safe.generate(name)), name.inspect }
    assert_equal "<>&?~", verified(safe.generate("<>&?~", expires_in: 60))
  end

  def test_an_expiry_ends
    name = signed("room:1", expires_in: 60)
    assert_equal "room:1", verified(name)
    Time.stub(:now, Time.now + 61) do
      assert_nil verified(name)
      assert_nil @verifier.verified(name)
    end
  end

  FORGED = {
    "nothing" => nil, "no text" => 42, "empty" => "", "a plain name" => "room:1", "no signature" => "InJvb206MSI=", "bytes" => "\xff\xfe--#{"0" * 64}",
    "another signature" => "InJvb206MSI=--#{"0" * 64}", "short" => "InJvb206MSI=--00", "no data" => "--#{"0" * 64}", "long" => "A" * 100_000
  }.freeze

  FORGED.each do |what, text|
    define_method("test_forged_#{what}") { assert_nil verified(text) }
  end

  def test_a_changed_byte_anywhere
    name = signed("room:1")
    name.bytesize.times do |at|
      changed = name.dup
      changed.setbyte(at, changed.getbyte(at) ^ 1)
      assert_nil verified(changed), at.to_s
    end
    assert_nil verified("#{name}\n")
    assert_nil verified(" #{name}")
    assert_nil verified(name.upcase)
  end

  # Whoever has the secret may sign other things with it: they are no names.
  def test_signed_and_no_name
    plain = ['{"a":1}', "[]", "1", "null", "{", '""', "\"#{"a" * 1025}\"", "[" * 50, "\"\xff\"", '{"_rails":1}', '{"_rails":{"message":1}}',
             '{"_rails":{"message":"!"}}', '{"_rails":{"data":"a","exp":"soon"}}', '{"_rails":{"data":"a","exp":5}}',
             '{"_rails":{"data":"a","pur":"login"}}', '{"_rails":{}}']
    plain.each do |text|
      data = [text].pack("m0")
      assert_nil verified("#{data}--#{OpenSSL::HMAC.hexdigest("SHA256", SECRET, data)}"), text
    end
    assert_nil verified(ActiveSupport::MessageVerifier.new(SECRET, digest: "SHA1", serializer: JSON).generate("room:1"))
  end

  def test_the_first_secret_signs_and_all_verify
    old = signed("room:1")
    Rondo::Signed.secrets = [OLD, SECRET]
    assert_equal "room:1", verified(old)
    fresh = signed("room:1")
    refute_equal old, fresh
    Rondo::Signed.secrets = OLD
    assert_nil verified(old)
    assert_equal "room:1", verified(fresh)
  end

  def test_the_secrets_of_the_variable
    Rondo::Signed.secrets = nil
    refute_predicate Rondo::Signed, :ready?
    assert_match(/no secret for signed names: set signing_secret/, assert_raises(Rondo::Error) { signed("a") }.message)
    assert_raises(Rondo::Error) { verified("a") }
    ENV[Rondo::Signed::VARIABLE] = "sixteen-bytes-or-more another-one-of-them"
    assert_equal "a", verified(signed("a"))
    ENV[Rondo::Signed::VARIABLE] = "short"
    error = assert_raises(Rondo::Error) { signed("a") }
    assert_equal "RONDO_SIGNING_SECRET must be 1 to 16 Strings of 16 bytes or more", error.message
  end

  def test_secrets_and_names_that_are_refused
    ["", "short", [], ["a" * 16, nil], ["a" * 16] * 17, 5].each { |secrets| assert_raises(ArgumentError, secrets.inspect) { Rondo::Signed.secrets = secrets } }
    ["", "a" * 1025, "\xff"].each { |name| assert_raises(ArgumentError, name.inspect) { signed(name) } }
    assert_raises(TypeError) { signed(5) }
    [0, -1, Float::NAN, Float::INFINITY, 10**12, Complex(5, 0), Complex(5, 1)].each do |time|
      error = assert_raises(ArgumentError, time.to_s) { signed("a", expires_in: time) }
      assert_equal "expires_in must be from 0.001 s to 100 years", error.message
    end
    assert_raises(TypeError) { signed("a", expires_in: "60") }
  end

  # ---- the application ----

  def test_what_the_application_answers
    good = query(signed("room:1"))
    assert_equal [406, "This is a WebSocket, or a stream of events\n"], ask(good, nil)
    assert_equal 200, ask(good, :sse).first
    assert_equal 200, ask((1..16).map { |number| query(signed("room:#{number}")) }.join("&"), :websocket).first
    assert_equal 200, ask("#{good}&channel=#{signed("<>&?~")}", :sse).first, "a plus that is not escaped"
    forbidden = ["", "channel=", "channel", "stream=#{signed("a")}", "channel=room:1", "channel=%ff", "channel=%", "#{good}&channel=room:2",
                 (1..17).map { |number| query(signed("room:#{number}")) }.join("&"), "channel=#{"a" * 70_000}", "a&" * 100_000]
    forbidden.each { |text| assert_equal 403, ask(text, :sse).first, text[0, 50] }
    assert_equal "A channel is not signed, or its signature has expired\n", ask("channel=room:1", :sse).last
    Time.stub(:now, Time.now + 61) { assert_equal 403, ask(query(signed("room:1", expires_in: 60)), :sse).first } # signed by another clock
  ensure
    Rondo::Signed.secrets = nil
    assert_equal 503, ask("channel=a", :sse).first
  end

  private

  def signed(...) = Rondo::Signed.channel(...)
  def verified(...) = Rondo::Signed.verified(...)
  def query(name) = "channel=#{URI.encode_www_form_component(name)}"

  def ask(query, upgrade)
    status, headers, body = Rondo::Signed::Subscriptions.new.call("QUERY_STRING" => query, "rack.upgrade?" => upgrade)
    assert_equal "*", headers["access-control-allow-origin"]
    assert_equal 1, body.size unless status == 200
    [status, body.first]
  end
end
