# frozen_string_literal: true

# Addresses of Redis: one server, Sentinels, a cluster; options, files, and what is none. No text has a password in it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/redis"
require "rondo/pubsub/redis/address"
require "tmpdir"

class RedisAddressTest < Minitest::Test
  Address = Rondo::PubSub::Redis::Address

  def setup
    @folder = Dir.mktmpdir("rondo-address")
  end

  def teardown
    FileUtils.rm_rf(@folder)
  end

  def test_one_server
    address = Address.new("redis://user:pw@h:7/2", {})
    assert_equal [:single, "redis://h:7/2"], [address.kind, address.name]
    assert_equal [%w[AUTH user pw], %w[SELECT 2]], address.config.connection_prelude
  end

  def test_sentinels
    address = Address.new("redis+sentinel://user:p%40w@a,b:1,[::1]:2/main/3", {})
    assert_equal [:sentinel, "main"], [address.kind, address.master]
    assert_equal [["a", 26_379], ["b", 1], ["::1", 2]], address.nodes
    assert_equal "redis+sentinel://a:26379,b:1,[::1]:2/main/3", address.name
    config = address.config("h", 6)
    assert_equal ["h", 6, false], [config.host, config.port, config.ssl?]
    assert_equal [%w[AUTH user p@w], %w[SELECT 3]], config.connection_prelude
    assert_empty address.sentinel_config("a", 1).connection_prelude
  end

  def test_what_sentinels_want
    address = Address.new("rediss+sentinel://a/main?sentinel_username=s&sentinel_password=p%26w", {})
    config = address.sentinel_config("a", 1)
    assert_equal [[%w[AUTH s p&w]], true], [config.connection_prelude, config.ssl?]
    refute_predicate Address.new("rediss+sentinel://a/main?sentinel_tls=no", {}).sentinel_config("a", 1), :ssl?
    assert_equal [%w[AUTH pw]], Address.new("redis+sentinel://a/main", sentinel_password: "pw").sentinel_config("a", 1).connection_prelude
  end

  def test_a_cluster
    address = Address.new("rediss+cluster://:pw@a:7000,b/", {})
    assert_equal [:cluster, "rediss+cluster://a:7000,b:6379"], [address.kind, address.name]
    config = address.config("c", 9)
    assert_equal ["c", 9, true, [%w[AUTH pw]]], [config.host, config.port, config.ssl?, config.connection_prelude]
  end

  def test_a_file_with_a_password_is_read_for_each_connection
    path = write("pw", "first\n")
    ["redis://app@h?password_file=#{path}", "redis+cluster://app@h?password_file=#{path}"].each do |url|
      File.write(path, "first\n")
      address = Address.new(url, {})
      assert_equal [%w[AUTH app first]], address.config.connection_prelude
      File.write(path, "second")
      assert_equal [%w[AUTH app second]], address.config.connection_prelude
      refute_includes address.inspect + address.name, "second"
    end
    assert_equal [%w[AUTH second]], Address.new("redis://h", password_file: path).config.connection_prelude
    assert_equal [%w[AUTH second]],
                 Address.new("redis+sentinel://h/m?sentinel_password_file=#{path}", {}).sentinel_config("h", 1).connection_prelude
  end

  def test_files_that_cannot_be_used
    { "#{@folder}/nowhere" => "cannot read #{@folder}/nowhere: No such file or directory", @folder => "not a file: #{@folder}",
      write("empty", "\n") => "the file with the password is empty: #{@folder}/empty",
      write("long", "x" * 4097) => "the file has more than 4096 bytes: #{@folder}/long" }.each do |path, line|
      assert_equal "Redis: #{line}", complaint("redis://h?password_file=#{path}")
    end
    ca = write("ca.pem", "nothing")
    assert_match(/\ARedis: the certificates of the address cannot be used: /, complaint("rediss://h?ca_file=#{ca}"))
    assert_match(/\ARedis: cannot read/, complaint("rediss://h?cert=#{@folder}/nowhere"))
  end

  def test_options_that_do_not_fit
    path = write("pw", "x")
    { "redis+cluster://h?foo=1" => "the address of Redis has an option that is none: foo",
      "redis://h?ca_file=#{path}" => "the address of Redis: ca_file needs an address with rediss",
      "redis://h?sentinel_password=secret" => "the address of Redis: sentinel_password needs an address with +sentinel",
      "redis+sentinel://h/m?sentinel_tls=1" => "the address of Redis: sentinel_tls is yes or no",
      "redis://:secret@h?password_file=#{path}" => "the address of Redis: a password and password_file exclude each other" }
      .each { |url, line| assert_equal line, complaint(url) }
  end

  def test_addresses_that_are_none
    ["redis+sentinel://h", "redis+sentinel://h/", "redis+sentinel:///main", "redis+sentinel://h/a b", "redis+sentinel://h/main/x",
     "redis+sentinel://h/main/1/2", "redis+sentinel://h:0/main", "redis+sentinel://h:65536/main", "redis+sentinel://h,/main",
     "redis+sentinel://,h/main", "redis+sentinel://h!/main", "redis+sentinel://:secret@x@h/main", "redis+sentinel://#{(["h"] * 33).join(",")}/m",
     "redis+cluster://", "redis+cluster://h/1", "redis+cluster://[::1/", "redis+other://h", "http+cluster://h", "redis+sentinel://h/m\n",
     "redis+sentinel://u:secret@h!/m?sentinel_password=secret"].each do |url|
      line = complaint(url)
      assert_match(/\Athis is not the address of a Redis server: /, line, url)
      refute_includes line, "secret"
    end
  end

  private

  def write(name, text)
    File.join(@folder, name).tap { |path| File.write(path, text) }
  end

  def complaint(url)
    assert_raises(Rondo::ConfigurationError, url) { Address.new(url, {}) }.message
  end
end
