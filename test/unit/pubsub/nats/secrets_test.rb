# frozen_string_literal: true

# No password comes into a line of the log, or into what an object shows of itself.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require "rondo"
require "rondo/config/configuration"
require "rondo/pubsub/nats"
require "rondo/pubsub/nats/stream"
require "rondo/pubsub/redis/pump"

class SecretsTest < Minitest::Test
  # Address that is none => what is shown of it.
  SHOWN = {
    "nats://a:secret@h:1" => "nats://h:1", "nats://secret@" => "nats://", "a:secret@h" => "h", "nats://h:1,nats://a:secret@i" => "nats://i",
    "nats:/a:secret@h" => "nats:/h", "nats://a:secret" => "nats://a:...", "nats://a:se/c@r@h" => "nats://h",
    "redis://h/?password=secret&x=1" => "redis://h/?password=...&x=1", "redis://h?sentinel_password=secret" => "redis://h?sentinel_password=...",
    "redis+cluster://:secret@h:0,:secret@i" => "redis+cluster://i", "redis://[::1]:6379/2" => "redis://[::1]:6379/2",
    "redis://h:99999,i:x" => "redis://h:99999,i:...", "nats://a:secret\n@h" => "nats://h", "foo" => "foo", "" => "", "\xff" => "\ufffd"
  }.freeze
  ADDRESSES = ["redis:/a:secret@h", "redis://a:se\"secret@h", "nats://a:secret@h h", "http://a:secret@h", "a:secret@h", "nats:///a:secret@h", "redis://a:se/secret@h", "nats://a:secret"].freeze

  # A variable with these is refused when the engine is made of it.
  LATER = ["nats://a:secret@h h", "nats://a:secret"].freeze

  def test_an_address_that_is_none_is_shown_without_a_password
    SHOWN.each { |url, shown| assert_equal shown, Rondo::PubSub::Queued.without_secrets(url), url }
  end

  def test_no_source_of_an_address_says_it
    ADDRESSES.each do |url|
      [-> { Rondo::PubSub::Nats.new(url) }, -> { verb("nats #{url.inspect}") }, -> { verb("nats({ url: #{url.inspect} })") },
       -> { verb("redis_url ['x://#{url}@h']") }, -> { verb("redis_streams ['x://#{url}@h']") },
       -> { Rondo::PubSub::Redis.new(url) }, *(-> { variable(url) } unless LATER.include?(url))].each do |attempt|
        error = assert_raises(Rondo::ConfigurationError, Rondo::Settings::Kind::Refused, url, &attempt)
        refute_includes error.message, "secret"
        assert_equal 1, error.message.lines.size
      end
    end
  end

  def test_a_user_of_an_address_is_as_addresses_are_written
    { "me:a+b" => { user: "me", pass: "a+b" }, "m%40e:%C3%BC%2F%25" => { user: "m@e", pass: "ü/%" }, "to+ken" => { auth_token: "to+ken" } }.each do |words, fields|
      assert_equal fields, Rondo::PubSub::Nats::Credentials.new({}).fields(URI("nats://#{words}@h"), nil)
    end
  end

  def test_objects_show_no_secret
    words = { user: "me", password: "secret", token: "secret" }
    access = Rondo::PubSub::Nats::Credentials.new(words)
    assert_equal "#<Rondo::PubSub::Nats::Credentials user, password, token>", access.inspect
    engine = Rondo::PubSub::Nats.new("nats://me:secret@127.0.0.1:1", password: "secret")
    pump = engine.send(:begin_pump)
    assert_equal ["#<Rondo::PubSub::Nats NATS at 127.0.0.1:1>", "#<Rondo::PubSub::Nats::Pump >"], [engine.inspect, pump.inspect]
    redis = Rondo::PubSub::Redis.new("redis://me:secret@127.0.0.1:1")
    assert_equal "#<Rondo::PubSub::Redis::Pump >", redis.send(:begin_pump).inspect
    refute_includes redis.instance_variable_get(:@place).inspect, "secret"
  end

  def test_connections_show_no_secret
    TCPServer.open("127.0.0.1", 0) do |server|
      accepted = []
      thread = Thread.new { loop { accepted << server.accept.tap { |socket| socket.write("INFO {}\r\n") } } }
      port = server.addr[1]
      terms = { tls: nil, timeout: 60, ping: 60, bytes_max: 1, on_refusal: nil }
      link = Rondo::PubSub::Nats::Link.new(URI("nats://me:secret@127.0.0.1:#{port}"), Rondo::PubSub::Nats::Credentials.new({}), **terms)
      assert_equal "#<Rondo::PubSub::Nats::Link 127.0.0.1:#{port}>", link.inspect
      config = Rondo::PubSub::Redis::Address.new("redis://me:secret@127.0.0.1:#{port}", {}).config
      other = Rondo::PubSub::Redis::Link.new(config, timeout: 60, ping: 60, reply_max: 1)
      assert_equal "#<Rondo::PubSub::Redis::Link 127.0.0.1:#{port}>", other.inspect
    ensure
      thread&.kill
      [link, other, *accepted].compact.each(&:close)
    end
  end

  private

  def verb(line)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "bad.rb")
      File.write(path, "#{line}\n")
      Rondo::Configuration.new(path)
    end
  end

  def variable(url)
    row = Rondo::Settings::ROWS.find { |each| each.name == :nats }
    Rondo::Settings::KINDS[:nats].variable(row, url)
  end
end
