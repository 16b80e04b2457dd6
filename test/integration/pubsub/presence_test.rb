# frozen_string_literal: true

# Presence over workers and over servers that share only a Redis: clients that come, go, come back elsewhere, processes
# that are killed, and an engine that is away.
# SPDX-License-Identifier: MIT

require_relative "../control/control_case"
require "support/presence_machines"
require "support/redis_server"

class PresenceTest < ControlCase
  include PresenceMachines
  include PresenceMachines::Tests

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

  # An id of it would be there until `grace` is over.
  def test_a_client_that_has_closed_does_not_come
    write "config.ru", PresenceMachines::APP.sub("class Peer\n", <<~'RUBY')
      class Peer
        def late(client, id) = warn("late #{id}: #{client.join("told", id: id)}")
        def on_close(client) = late(client, "end")
    RUBY
                                            .sub('when "leave"', %(when "late" then client.close || late(client, id)\n\\0))
    server = start(env: { "GRACE" => "600" })
    WebsocketPeer.new(server.url).say(JSON.generate(["late", nil, "ada"])).close
    server.wait_for_log(/late ada: false.*late end: false/m)
    assert peer(server).join("told", "bob")
    server.wait_for_log(/joined bob/)
    assert_equal %w[bob], ids(server, "told")
    refute_match(/joined (ada|end)/, server.log)
  end

  # In a worker they have its number; whoever collects JSON gets nothing else.
  def test_what_it_says_is_a_line_of_the_log
    write "json.rb", "log_format :json\n"
    write "config.ru", PresenceMachines::APP.sub('secret: "of the test", ', "")
    { "0" => nil, "1" => 0 }.each do |workers, number|
      server = start("-w", workers, "-C", "json.rb")
      server.wait_for_log(/Presence has no secret/)
      line = JSON.parse(server.log[/^.*Presence has no secret.*$/])
      assert_equal ["warn", number], line.values_at("level", "worker")
    end
  end

  def test_over_workers_whose_messages_are_short
    write "short.rb", "max_publish_bytes 16_384\n"
    server = start("-w", "2", "-C", "short.rb")
    server.wait_for_log(/max_publish_bytes is 16384, less than 20480/)
    one, two = in_both_workers(server)
    peers = Array.new(40) { peer(server) }.select { |peer| peer.pid == one.pid }.first(8)
    assert_equal 8, peers.size, "clients of one worker"
    entries = Array.new(peers.size) { |number| ["#{number} ".ljust(250, "x"), "i" * 4000] }.sort
    peers.zip(entries) { |peer, entry| assert peer.join("room", *entry) }
    wait_until { two.list("room") == entries }
    refute_match(/could not be published/, server.log)
  end

  # There is no other thread of the application that could take the answers.
  def test_the_only_thread_may_ask_for_a_room
    server = start("-w", "2", "-t", "1:1")
    peers = in_both_workers(server)
    assert peers[0].join("room", "ada")
    wait_until { peers[1].list("room").any? } # the other worker may not have heard of the first one yet
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

  private

  def start_engine
    RedisServer.new
  end

  def engine_lines(redis, queue)
    "pubsub_engine { Rondo::PubSub::Redis.new(#{redis.url.inspect}, queue: #{queue}).tap(&:start) }"
  end

  def ids(server, room)
    JSON.parse(get(server, "/?#{room}").body).map(&:first)
  end
end
