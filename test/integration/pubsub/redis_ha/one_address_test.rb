# frozen_string_literal: true

# An address in front of two servers, without Sentinels: a proxy of the test. The master becomes a replica, and lives on.
# SPDX-License-Identifier: MIT

require_relative "../redis_case"
require "support/tcp_cutter"

class RedisOneAddressTest < RedisCase
  def setup
    super
    @old = redis("--repl-diskless-sync-delay", "0")
    @new = redis("--replicaof", "127.0.0.1", @old.port.to_s)
    eventually("a replica") { @old.cli("INFO", "replication").include?("state=online") }
    @address = TcpCutter.new(@old.port)
    @url = "redis://127.0.0.1:#{@address.port}"
  end

  def teardown
    super
    @address.close
  end

  def test_messages_reach_the_new_master
    engine = connect_and_ask(@url)
    engine.subscribe("here", false)
    listen_at_new("there")
    change_roles
    @address.target = @new.port
    eventually("an outage") { @log.string.include?("is not available: it has become a replica; trying again") }
    engine.publish("there", "x")
    assert_equal [%w[there x]], take(1)
    @new.cli("PUBLISH", "here", "y")
    assert_equal [%w[here y]], take(1)
    assert_equal 3, @log.string.lines.grep(/#{@url}\b/).size, @log.string
  end

  def test_streams_are_followed_too
    engine = connect_and_ask(@url, Rondo::PubSub::RedisStreams)
    engine.subscribe("kept", false, 1)
    engine.publish("kept", "1", terms)
    assert_equal [%w[kept 1]], take(1)
    change_roles
    @address.target = @new.port
    eventually("an outage") { @log.string.include?("it has become a replica") || @log.string.include?("READONLY") }
    engine.publish("kept", "2", terms)
    assert_equal [%w[kept 2]], take(1)
  end

  # It never is silent.
  def test_a_connection_that_is_busy_is_given_up_too
    engine = connect_and_ask(@url)
    busy = Thread.new { engine.publish("nobody's", "x") and IO.select(nil, nil, nil, 0.01) until @is_over }
    change_roles
    eventually("an outage") { @log.string.include?("it has become a replica") }
    @address.target = @new.port
    eventually("the new master") { engine.connected? }
  ensure
    @is_over = true
    busy&.join
  end

  # Until then messages wait.
  def test_an_address_that_leads_to_the_new_master_later
    engine = connect_and_ask(@url)
    listen_at_new("there")
    change_roles
    eventually("an outage") { !engine.connected? }
    sent = (1..20).map(&:to_s)
    sent.each { |message| assert engine.publish("there", message) }
    asked = role_calls(@old)
    eventually("more attempts") { role_calls(@old) > asked + 2 }
    refute_predicate engine, :connected?
    @address.target = @new.port
    assert_equal sent, take(sent.size).map(&:last)
    assert_equal 1, @log.string.scan("is not available").size, @log.string
  end

  # The connection is lost before anybody asks what it leads to.
  def test_a_master_that_comes_back_as_a_replica
    engine = connect_and_ask(@url)
    listen_at_new("there")
    @old.kill
    eventually("an outage") { !engine.connected? }
    @new.cli("REPLICAOF", "NO", "ONE")
    @old.start("--replicaof", "127.0.0.1", @new.port.to_s)
    eventually("questions") { role_calls(@old) > 2 }
    assert engine.publish("there", "x")
    refute_predicate engine, :connected?
    @address.target = @new.port
    assert_equal [%w[there x]], take(1)
  end

  def test_a_replica_from_the_start_is_left_as_it_is
    engine = connect_and_ask(@new.url)
    engine.subscribe("c", false)
    engine.publish("c", "x")
    assert_equal [%w[c x]], take(1)
    wait_for_pings(@new)
    assert_equal 1, role_calls(@new)
    assert_predicate engine, :connected?
    refute_includes @log.string, "is not available"
  end

  def test_a_user_who_may_not_ask_is_left_alone
    server = redis(users: ["user default on nopass ~* &* +@all", "user app on >pw ~* &* +@all -role"])
    engine = connect(server.url("app:pw"))
    wait_for_pings(server)
    assert_match(/cmdstat_role:.*rejected_calls=1,/, server.cli("INFO", "commandstats"))
    assert_predicate engine, :connected?
    assert_equal 1, @log.string.lines.size, @log.string
  end

  private

  # An engine that knows what its Redis is.
  def connect_and_ask(url, kind = Rondo::PubSub::Redis)
    server = url == @url ? @old : @new
    asked = role_calls(server)
    engine = kind.new(url, log: log, **TERMS).tap { |each| @engines << each }
    engine.wait_until_connected(PATIENCE)
    eventually("a question") { role_calls(server) > asked }
    engine
  end

  def terms
    Rondo::PubSub::Queued::Terms.new(10, 0, nil)
  end

  # One more server of the application, which was not there before.
  def listen_at_new(channel)
    connect(@new.url).subscribe(channel, false)
    eventually("a subscription") { @new.cli("PUBSUB", "NUMSUB", channel).split.last == "1" }
  end

  def change_roles
    @new.cli("REPLICAOF", "NO", "ONE")
    @old.cli("REPLICAOF", "127.0.0.1", @new.port.to_s)
  end

  def wait_for_pings(server)
    eventually("pings") { server.cli("INFO", "commandstats")[/cmdstat_ping:calls=(\d+)/, 1].to_i > 6 }
  end

  def role_calls(server)
    server.cli("INFO", "commandstats")[/cmdstat_role:calls=(\d+)/, 1].to_i
  end
end
