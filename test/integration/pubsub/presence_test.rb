# frozen_string_literal: true

# Presence over workers and over servers that share only a Redis: clients that come, go, come back elsewhere, processes
# that are killed, and an engine that is away.
# SPDX-License-Identifier: MIT

require "json"
require_relative "../control/control_case"
require "support/redis_server"
require "support/websocket_peer"

class PresenceTest < ControlCase
  APP = <<~'RUBY'
    require "json"
    Rondo::Presence.configure(secret: "of the test", grace: Float(ENV.fetch("GRACE", "1")), rooms_per_client: 3)
    Rondo::Presence.on_join("told") { |id, info| warn "joined #{id} #{info.inspect} at #{Process.pid}" }
    Rondo::Presence.on_leave("told") { |id, info| warn "left #{id} #{info.inspect} at #{Process.pid}" }
    Rondo::Presence.on_join("once", once: true) { |id| warn "once joined #{id}" }
    class Peer
      def on_open(client) = client.write(Process.pid.to_s)
      def on_message(client, data)
        what, room, id, info = JSON.parse(data)
        answer =
          case what
          when "join" then client.join(room, id: id, info: info)
          when "leave" then client.leave(room)
          when "list" then Rondo::Presence.list(room, timeout: 10).sort
          end
        client.write([answer])
      rescue ArgumentError, TypeError => e
        client.write([e.class.name, e.message])
      end
    end
    run lambda { |env|
      env["rack.upgrade"] = Peer.new if env["rack.upgrade?"]
      list = Rondo::Presence.list(env["QUERY_STRING"], timeout: 10).sort unless env["QUERY_STRING"].empty?
      [200, { "content-type" => "application/json" }, [JSON.generate(list)]]
    }
  RUBY

  # What a test says to its clients.
  class Peer
    attr_reader :pid

    def initialize(url)
      @peer = WebsocketPeer.new(url)
      @pid = Integer(@peer.hear)
    end

    def call(*words) = JSON.parse(@peer.ask(JSON.generate(words)))
    def join(room, id, info = nil) = call("join", room, id, info).first
    def leave(room) = call("leave", room).first
    def list(room) = call("list", room).first
    def close = @peer.close
  end

  def setup
    super
    write "config.ru", APP
    @peers = []
  end

  def teardown
    @peers.each(&:close)
    super
    @redis&.close
  end

  def test_one_process
    server = start
    one, two = peer(server), peer(server)
    assert one.join("room", "ada", { "name" => "Ada" })
    assert_equal [["ada", { "name" => "Ada" }]], two.list("room")
    assert two.join("room", "ada", { "name" => "Ada" })
    assert one.leave("room")
    refute one.leave("room")
    assert_equal ["ada"], ids(server, "room")
    two.close
    wait_until { ids(server, "room").empty? }
  end

  def test_blocks_are_told_once_for_an_id_with_several_tabs
    server = start
    tabs = Array.new(3) { peer(server) }
    tabs.each { |tab| assert tab.join("told", "ada", "x") }
    server.wait_for_log(/joined ada "x" at/)
    tabs.first(2).each(&:close)
    last = peer(server)
    assert last.join("told", "bob")
    server.wait_for_log(/joined bob nil/)
    tabs.last.close
    server.wait_for_log(/left ada "x" at/)
    assert_equal 1, server.log.scan("joined ada").size
    assert_equal 1, server.log.scan("left ada").size
  end

  # There is no other thread of the application that could take the answers.
  def test_the_only_thread_may_ask_for_a_room
    server = start("-w", "2", "-t", "1:1")
    peers = in_both_workers(server)
    assert peers[0].join("room", "ada")
    assert_equal [["ada", nil]], peers[1].list("room")
  end

  def test_over_workers_also_when_one_is_killed
    server = start("-w", "2")
    one, two = in_both_workers(server)
    assert one.join("told", "ada", %w[a])
    assert two.join("told", "bob")
    [one, two].each { |peer| wait_until { peer.list("told") == [["ada", %w[a]], ["bob", nil]] } }
    [one, two].each { |peer| server.wait_for_log(/joined ada \["a"\] at #{peer.pid}/) }
    Process.kill("KILL", one.pid)
    server.wait_for_log(/left ada \["a"\] at #{two.pid}/)
    assert_equal [["bob", nil]], two.list("told")
    assert_equal 1, server.log.scan(/left ada .* at #{two.pid}/).size
    refute_match(/left bob/, server.log)
  end

  def test_who_comes_back_at_another_worker_has_not_left
    server = start("-w", "2", env: { "GRACE" => "600" })
    one, two = in_both_workers(server)
    assert one.join("told", "ada")
    server.wait_for_log(/joined ada nil at #{two.pid}/)
    one.close
    assert two.join("told", "ada")
    assert two.join("told", "bob") # replaces
    server.wait_for_log(/joined bob nil at #{two.pid}/)
    assert_equal %w[ada bob], two.list("told").map(&:first), "ada may come back"
    refute_match(/left/, server.log)
  end

  def test_a_worker_that_ends_in_order_needs_no_silence
    server = start("-w", "2", env: { "GRACE" => "0" })
    one, two = in_both_workers(server)
    assert one.join("told", "ada")
    server.wait_for_log(/joined ada nil at #{two.pid}/)
    Process.kill("TERM", one.pid)
    server.wait_for_log(/left ada nil at #{two.pid}/)
    refute_match(/were not heard|was not heard/, server.log)
  end

  def test_bad_arguments_have_one_line_and_limits_an_answer
    server = start
    one = peer(server)
    assert_match(/info has \d+ bytes as JSON, more than 4096/, one.call("join", "room", "x", "i" * 100_000).last)
    assert_match(/info must be a Hash, an Array, a String or nil, not Integer/, one.call("join", "room", "x", 5).last)
    assert_match(/an id must be a String, not Integer/, one.call("join", "room", 5).last)
    assert_match(/an id must be a String, not NilClass/, one.call("join", "room", nil).last)
    assert_match(/an id must have 1 to 256 bytes, not 257/, one.call("join", "room", "x" * 257).last)
    assert_match(/an id must have 1 to 256 bytes, not 0/, one.call("join", "room", "").last)
    assert_match(/a room must have 1 to 256 bytes/, one.call("join", "r" * 257, "x").last)
    assert_match(/a room must be a String, not Array/, one.call("join", [], "x").last)
    assert_equal([true, true, true, false], %w[a b c d].map { |room| one.join(room, "x") })
    server.wait_for_log(/a limit of Rondo::Presence was reached/)
    assert one.leave("a")
    assert one.join("d", "x")
  end

  def test_the_numbers_are_on_the_scoreboard
    server = controlled("-w", "2")
    one, two = in_both_workers(server)
    assert one.join("told", "ada")
    wait_until { two.list("told").size == 1 }
    wait_until do
      metrics = control(server, "/metrics").body
      %w[rooms ids processes].all? { |name| metrics.scan(/^rondo_presence_#{name}\S* (\d+)$/).flatten.any? { |count| count.to_i.positive? } }
    end
    assert_match(/^rondo_presence_lost_total\S* 0$/, control(server, "/metrics").body)
  end

  # ---- machines ----

  def test_two_servers_know_each_other_by_redis_and_lose_one
    @redis = RedisServer.new
    one, two = Array.new(2) { start("-w", "2", "-r", @redis.url) }
    ada, bob = peer(one), peer(two)
    assert ada.join("told", "ada", { "n" => 1 })
    assert bob.join("told", "bob")
    [ada, bob].each { |peer| wait_until { peer.list("told") == [["ada", { "n" => 1 }], ["bob", nil]] } }
    two.wait_for_log(/joined ada \{"n"=>1\}/)
    one.kill
    wait_until { bob.list("told") == [["bob", nil]] }
    two.wait_for_log(/left ada/)
  end

  def test_an_engine_that_is_away_leaves_the_server_its_own
    @redis = RedisServer.new
    one, two = Array.new(2) { start("-w", "2", "-r", @redis.url) }
    ada, cid = in_both_workers(one)
    bob = peer(two)
    assert ada.join("room", "ada")
    assert bob.join("room", "bob")
    wait_until { cid.list("room").size == 2 && bob.list("room").size == 2 }
    @redis.kill
    assert cid.join("room", "cid")
    wait_until { ada.list("room").map(&:first) == %w[ada cid] }
    assert_equal %w[ada cid], cid.list("room").map(&:first)
    @redis.start
    [ada, bob, cid].each { |peer| wait_until { peer.list("room").map(&:first) == %w[ada bob cid] } }
  end

  private

  def peer(server)
    Peer.new(server.url).tap { |peer| @peers << peer }
  end

  # New connections go to the worker with the fewest.
  def in_both_workers(server)
    one = peer(server)
    two = nil
    wait_until { (two = peer(server)).pid != one.pid }
    [one, two]
  end

  def ids(server, room)
    JSON.parse(get(server, "/?#{room}").body).map(&:first)
  end

  def wait_until
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until yield
      raise "that did not happen" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      sleep 0.05
    end
  end
end
