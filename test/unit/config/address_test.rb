# frozen_string_literal: true

# Addresses in the forms that people write.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "rondo"

class AddressTest < Minitest::Test
  Address = Rondo::Address

  {
    "tcp://127.0.0.1:80" => { kind: :tcp, host: "127.0.0.1", port: 80 },
    "tcp://127.0.0.1:0/" => { kind: :tcp, host: "127.0.0.1", port: 0 },
    "tcp://[::1]:65535" => { kind: :tcp, host: "::1", port: 65_535 },
    "tcp://name.example:1" => { kind: :tcp, host: "name.example", port: 1 },
    "tcp://127.0.0.1:1?backlog=64&reuse_port=true" =>
      { kind: :tcp, host: "127.0.0.1", port: 1, backlog: 64, reuse_port: true },
    "tcp://127.0.0.1:1?reuse_port=0" => { kind: :tcp, host: "127.0.0.1", port: 1, reuse_port: false },
    "unix:///run/a.sock" => { kind: :unix, path: "/run/a.sock" },
    "unix:///run/a%20b.sock?mode=0660" => { kind: :unix, path: "/run/a%20b.sock", mode: 0o660 },
    "unix:///a?umask=0117" => { kind: :unix, path: "/a", mode: 0o660 },
    "unix:///a?umask=0117&mode=0600" => { kind: :unix, path: "/a", mode: 0o600 },
    "tcp://127.0.0.1:1?low_latency=false" => { kind: :tcp, host: "127.0.0.1", port: 1, low_latency: false },
    "unix://@name" => { kind: :unix, path: "@name" }
  }.each do |uri, address|
    define_method("test_#{uri}") { assert_equal address, Address.parse(uri) }
  end

  # What people type, and what is bound at port 3000.
  {
    "localhost" => "tcp://localhost:3000", "10.0.0.1" => "tcp://10.0.0.1:3000", "::1" => "tcp://[::1]:3000",
    "[::]" => "tcp://[::]:3000", "localhost:80" => "tcp://localhost:80", "[::1]:80?backlog=5" => "tcp://[::1]:80?backlog=5",
    ":80" => "tcp://:80", "./a.sock" => "unix://#{Dir.pwd}/a.sock", "../a?mode=0600" => "unix://#{File.expand_path("../a")}?mode=0600",
    "/run/a b.sock" => "unix:///run/a b.sock", "~/a" => "unix://#{Dir.home}/a", "tcp://x:1" => "tcp://x:1",
    "" => "", "tmp/a.sock" => "tmp/a.sock", "a?b" => "a?b", "localhost:http" => "localhost:http", "a@b" => "a@b"
  }.each do |text, uri|
    define_method("test_typed_#{text}") do
      assert_equal uri, Address.uri(text, 3000)
    end
  end

  def test_urls_and_uris
    { "http://127.0.0.1:1" => "tcp://127.0.0.1:1", "https://[::1]:2" => "ssl://[::1]:2",
      "unix:///http:" => "unix:///http:" }.each { |url, uri| assert_equal uri, Address.uri_of(url) }
    %w[http://127.0.0.1:1 tcp://127.0.0.1:1 unix:///https: unix://@ssl:].each do |plain|
      assert_equal "http", Address.scheme(plain)
    end
    %w[https://127.0.0.1:1 ssl://127.0.0.1:1?key=k].each { |secure| assert_equal "https", Address.scheme(secure) }
  end

  def test_a_relative_path_is_that_of_the_current_folder
    assert_equal File.expand_path("tmp/a.sock"), Address.parse("unix://tmp/a.sock")[:path]
  end

  def test_no_host_is_every_interface
    assert_equal Address.any_host, Address.parse("tcp://:80")[:host]
  end

  {
    "" => /expected tcp/, "127.0.0.1:80" => /expected tcp/, "http://127.0.0.1:80" => /expected tcp/,
    "tcp://127.0.0.1" => /expected tcp/, "tcp://::1:80" => /expected tcp/,
    "tcp://127.0.0.1:http" => /expected tcp/, "tcp://127.0.0.1:80/x" => /expected tcp/,
    "tcp://127.0.0.1:99999" => /port 99999 is above 65535/, "unix://" => /expected tcp/,
    "ssl://127.0.0.1" => /expected tcp/, "ssl://127.0.0.1:99999?cert=c&key=k" => /port 99999 is above 65535/,
    "tcp://127.0.0.1:80?backlogs=1" => /unknown option backlogs/,
    "tcp://127.0.0.1:80?backlog=many" => /backlog cannot be "many"/,
    "unix:///x?mode=999" => /mode cannot be "999"/, "unix:///x?umask=8" => /umask cannot be "8"/,
    "tcp://127.0.0.1:80?reuse_port=perhaps" => /reuse_port cannot be "perhaps"/
  }.each do |uri, complaint|
    define_method("test_refuses_#{uri.inspect}") do
      error = assert_raises(Rondo::AddressError) { Address.parse(uri) }
      assert_match complaint, error.message
      assert_match(/\Acannot listen on #{Regexp.escape(uri)}: /, error.message)
    end
  end

  def test_an_address_with_tls
    address = Address.parse("ssl://[::1]:443?cert=c.pem&key=%26k.pem&verify_mode=peer&ca=/ca&backlog=3&no_tlsv1=true")
    assert_equal ["::1", 443, 3], address.values_at(:host, :port, :backlog)
    spec = address[:tls]
    assert_equal [[File.expand_path("c.pem"), File.expand_path("&k.pem"), nil]], spec.pairs.map(&:to_a)
    assert_equal [:peer, "/ca"], [spec.verify_mode, spec.ca]
  end

  # What follows the question mark may name a secret.
  {
    "cert=c" => "key is missing", "key=k" => "cert is missing",
    "cert=c&key=k&cert=d" => "key is missing", "cert=c&key=k&verify_mode=maybe" => /verify_mode cannot be "maybe"/,
    "cert=c&key=k&verify_mode=force_peer" => "verify_mode force_peer needs ca",
    "keystore=s&keystore_pass=x" => /keystore is JRuby's; give cert and key/,
    "cert=c&key=k&backlog=many" => /backlog cannot be "many"/, "cert=c&key=k&certs=x" => /unknown option certs/
  }.each do |query, complaint|
    define_method("test_refuses_tls_#{query.inspect}") do
      error = assert_raises(Rondo::AddressError) { Address.parse("ssl://127.0.0.1:1?#{query}") }
      assert_match(/\Acannot listen on ssl:\/\/127.0.0.1:1: /, error.message)
      assert_match complaint, error.message
    end
  end

  %w[ssl://127.0.0.1 ssl://127.0.0.1:99999 tcp://127.0.0.1:1 unix:///a].each do |place|
    define_method("test_refuses_#{place}_without_its_password_command") do
      error = assert_raises(Rondo::AddressError) { Address.parse("#{place}?cert=c&key=k&key_password_command=echo+secret") }
      assert_match(/\Acannot listen on #{place}: /, error.message)
      refute_includes error.message, "secret"
    end
  end

  def test_where_a_listener_is
    assert_equal({ kind: :tcp, host: "127.0.0.1", port: 1 }, Address.place("https://127.0.0.1:1"))
    assert_equal({ kind: :unix, path: "/a" }, Address.place("unix:///a"))
  end

  # What the master tells a worker, and what it leaves to the next one.
  def test_listeners_that_are_special
    uri = "app ssl://[::1]:0?cert=c&key=k"
    assert_equal ["https", "ssl://[::1]:0"], Address.read_word(Address.word(uri, "https://[::1]:80"))
    assert_equal ["http", "unix:///a b"], Address.read_word(Address.word("app unix:///a b", "unix:///a b"))
    assert_equal ["raw", "tcp://a:1"], Address.read_word(Address.word("raw tcp://a:1?backlog=1", "raw tcp://a:1"))
    assert_equal ["https", nil], Address.read_word(Address.word("ssl://a:1", "https://a:1"))
    assert_equal "app tcp://127.0.0.1:80", Address.uri_of("app http://127.0.0.1:80")
    assert_equal "https://127.0.0.1:80", Address.url_of("tcp://127.0.0.1:80", "app ssl://127.0.0.1:80?cert=c&key=k")
    assert_equal Address.place("http://127.0.0.1:80"), Address.place("app http://127.0.0.1:80")
    assert_equal(["app ", "raw ", nil], ["app tcp://a:1", "raw tcp://a:1", "tcp://a:1"].map { |each| Address.mark(each) })
  end

  def test_uris_of_hosts
    assert_equal "tcp://[::1]:1", Address.tcp_uri("::1", 1)
    assert_equal "tcp://[::1]:1", Address.tcp_uri("[::1]", 1)
    assert_equal "tcp://127.0.0.1:1", Address.tcp_uri("127.0.0.1", 1)
  end

  def test_localhost_is_both_families_where_the_system_has_them
    expected = Socket.ip_address_list.map(&:ip_address) & %w[127.0.0.1 ::1]
    hosts = Address.resolve(Address.parse("tcp://localhost:1")).map { |address| address[:host] }
    assert_empty expected - hosts
    assert_equal hosts.uniq, hosts
  end

  def test_localhost_is_each_of_its_addresses
    hosts = Address.resolve(Address.parse("tcp://localhost:1?backlog=5"))
    assert_includes hosts.map { |address| address[:host] }, "127.0.0.1"
    assert(hosts.all? { |address| address[:backlog] == 5 && address[:port] == 1 })
  end

  def test_other_addresses_are_themselves
    address = Address.parse("unix://@name")
    assert_equal [address], Address.resolve(address)
  end
end
