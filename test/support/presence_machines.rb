# frozen_string_literal: true

# Presence over two servers of two workers that share only an engine: the same tests for each engine. Who includes this
# has `start_engine`, which returns a child server, and `engine_lines(child, queue)`, the line of the configuration file
# for an engine that keeps `queue` messages while its server is away.
# SPDX-License-Identifier: MIT

require "json"
require "support/websocket_peer"

module PresenceMachines
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
          when "hear" then client.subscribe(room) && true
          when "say" then Rondo.publish(room, id)
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
    def hear = @peer.hear
    def close = @peer.close
  end

  # In each class with these tests.
  module Tests
    # Messages that the engine keeps: fewer than the beats of an outage. Some that were sent before it may have no answer.
    QUEUE = 10
    SENT = 6

    def test_two_servers_know_each_other_and_lose_one
      @engine = start_engine
      one, two = Array.new(2) { machine }
      ada, bob = peer(one), peer(two)
      assert ada.join("told", "ada", { "n" => 1 })
      assert bob.join("told", "bob")
      [ada, bob].each { |peer| wait_until { peer.list("told") == [["ada", { "n" => 1 }], ["bob", nil]] } }
      two.wait_for_log(/joined ada \{"n" ?=> ?1\}/)
      assert bob.leave("told")
      wait_until { ada.list("told").map(&:first) == ["ada"] }
      assert bob.join("told", "bob")
      one.kill
      wait_until { bob.list("told") == [["bob", nil]] }
      two.wait_for_log(/left ada/)
    end

    def test_an_engine_that_is_away_leaves_the_server_its_own
      @engine = start_engine
      one, two = Array.new(2) { machine }
      ada, cid = in_both_workers(one)
      bob = peer(two)
      assert ada.join("room", "ada")
      assert bob.join("room", "bob")
      wait_until { cid.list("room").size == 2 && bob.list("room").size == 2 }
      @engine.kill
      assert cid.join("room", "cid")
      [ada, cid].each { |peer| wait_until { peer.list("room").map(&:first) == %w[ada cid] } } # each worker waits by itself
      @engine.start
      [ada, bob, cid].each { |peer| wait_until { peer.list("room").map(&:first) == %w[ada bob cid] } }
    end

    # Each process says something once a second. Nobody has left before there were four beats of each.
    def test_a_long_outage_leaves_the_queue_to_messages
      @engine = start_engine
      one, two = Array.new(2) { machine(QUEUE) }
      ada, cid = in_both_workers(one)
      bob = peer(two)
      assert_equal [true, true, true], [ada.join("told", "ada"), cid.join("told", "cid"), bob.join("told", "bob")]
      wait_until { ada.list("told").size == 3 && bob.list("told").size == 3 }
      assert_equal [true], ada.call("hear", "news")
      @engine.kill
      one.wait_for_log(/is not available/)
      one.wait_for_log(/left bob .*left bob /m)
      SENT.times { |number| assert_equal [true], cid.call("say", "news", "message #{number}") }
      @engine.start
      assert_equal(Array.new(SENT) { |number| "message #{number}" }, Array.new(SENT) { ada.hear })
      refute_match(/queue is full/, one.log)
      [ada, bob, cid].each { |peer| wait_until { peer.list("told").map(&:first) == %w[ada bob cid] } }
    end
  end

  def setup
    super
    write "config.ru", APP
    @peers = []
  end

  def teardown
    @peers.each(&:close)
    super
    @engine&.close
  end

  private

  # @param queue [Integer]
  # @return [Server] of two workers
  def machine(queue = 10_000)
    file = "machine#{@machines = @machines.to_i + 1}.rb"
    write file, "#{engine_lines(@engine, queue)}\n"
    start("-w", "2", "-C", file).tap { |server| server.wait_for_log(/^\* (Redis|NATS) at/) }
  end

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

  def wait_until(&)
    eventually("what is waited for", &)
  end
end
