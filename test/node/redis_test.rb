# frozen_string_literal: true

# Redis on Node: a server there and one on MRI hear each other, each message arrives once, and what happens while Redis is
# away is what happens on MRI.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "support/node_process"
require "support/raw_client"
require "support/redis_server"
require "support/waiting"
require "support/websocket_peer"

class NodeRedisTest < Minitest::Test
  include Waiting

  APP = File.expand_path("redis.ru", __dir__)
  KINDS = { mri: ServerProcess, node: NodeProcess }.freeze

  def setup
    @closing = []
    @redis = redis
  end

  def teardown
    @closing.reverse_each { |one| one.is_a?(ServerProcess) ? one.kill : one.close }
  end

  def redis(*words, **options)
    RedisServer.new(*words, **options).tap { |server| @closing << server }
  end

  def start(kind, *args, env: {})
    KINDS[kind].new(APP, args: args, env: env).tap { |server| @closing << server }
  end

  def get(server, path)
    RawClient.open(server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  def peer(server, channel)
    WebsocketPeer.new(server.url, channel).tap do |peer|
      @closing << peer
      assert_equal "subscribed", peer.hear
    end
  end

  # Redis learns of a subscription a moment after the client.
  def wait_for_redis(channel, count, patterns: nil)
    wait_until do
      @redis.cli("PUBSUB", "NUMSUB", channel).split.last == count.to_s && (!patterns || @redis.cli("PUBSUB", "NUMPAT") == patterns.to_s)
    end
  end

  # Everything that comes until the last of all messages.
  def heard_until(last, peer)
    [].tap { |all| all << peer.hear until all.last == last }
  end

  def test_servers_on_mri_and_on_node_hear_each_other
    servers = { mri: start(:mri, "-r", @redis.url), node: start(:node, "-r", @redis.url), workers: start(:node, "-r", @redis.url, "-w", "2") }
    peers = servers.values.flat_map { |server| [peer(server, "news"), peer(server, "news"), peer(server, "new*")] }
    wait_for_redis("news", 3, patterns: 1)
    said = servers.map do |name, server|
      assert_equal "true", get(server, "/say?news=from-#{name}")
      "from-#{name}"
    end
    peers.each_with_index { |peer, number| peer.say("news=gr\u00fc\u00df dich \u{1F408} #{number}") }
    said += Array.new(peers.size) { |number| "gr\u00fc\u00df dich \u{1F408} #{number}" }
    peers.each { |peer| assert_equal said.map(&:b).sort, Array.new(said.size) { peer.hear.b }.sort }
    @redis.cli("PUBLISH", "news", "end")
    peers.each { |peer| assert_equal "end", peer.hear, "a message came twice" }
  end

  def test_bytes_are_bytes_on_both_sides
    mri, node = start(:mri, "-r", @redis.url), start(:node, "-r", @redis.url)
    peers = [peer(mri, "b"), peer(node, "b")]
    wait_for_redis("b", 2)
    [mri, node].each do |server|
      get(server, "/bytes?b")
      peers.each { |peer| assert_equal [2, "\xff\x00\r\n".b], peer.next_frame.then { |frame| [frame.opcode, frame.payload.b] } }
    end
  end

  def test_two_connections_for_all_workers_and_one_message_for_each_client
    server = start(:node, "-w", "3", "-r", @redis.url)
    peers = Array.new(6) { |number| peer(server, number.even? ? "c" : "*") }
    wait_for_redis("c", 1, patterns: 1)
    assert_equal "Rondo::PubSub::MASTER", get(server, "/default")
    20.times { |number| peers[number % 6].say("c=#{number}") }
    numbers = peers.map { |peer| Array.new(20) { peer.hear.to_i }.sort }
    assert_equal [[*0...20]] * 6, numbers
    @redis.cli("PUBLISH", "c", "end")
    peers.each { |peer| assert_equal "end", peer.hear }
    assert_equal 2, @redis.clients.size
    peers.each(&:close)
    wait_for_redis("c", 0, patterns: 0)
  end

  def test_the_class_in_an_application_with_workers
    server = start(:node, "-w", "2", env: { "OWN_REDIS" => @redis.url })
    peers = Array.new(4) { peer(server, "c") }
    wait_for_redis("c", 2)
    assert_equal "#<Rondo::PubSub::Redis Redis at #{@redis.url}>", get(server, "/default")
    peers.each_with_index { |peer, number| peer.say("c=#{number}") }
    peers.each { |peer| assert_equal %w[0 1 2 3], Array.new(4) { peer.hear }.sort }
    @redis.cli("PUBLISH", "c", "end")
    peers.each { |peer| assert_equal "end", peer.hear }
  end

  def test_who_subscribes_and_publishes_in_one_callback_gets_that_message
    [["-r", @redis.url], ["-r", @redis.url, "-w", "2"]].each_with_index do |args, round|
      server = start(:node, *args)
      20.times { |number| assert_equal "own", peer(server, "own-#{round}-#{number}").hear }
    end
  end

  def test_a_worker_that_dies_takes_its_subscriptions_along
    server = start(:node, "-w", "1", "-r", @redis.url)
    peer(server, "gone")
    wait_for_redis("gone", 1)
    Process.kill("KILL", server.log[/Worker 0 \(PID: (\d+)\) booted/, 1].to_i)
    wait_for_redis("gone", 0)
    server.wait_for_log(/(?:booted.*){2}/m)
    assert_equal "own", peer(server, "own").hear
  end

  def test_the_history_keeps_what_redis_brings
    [[], %w[-w 2]].each do |args|
      server = start(:node, "-r", @redis.url, *args)
      listener = peer(server, "kept")
      wait_for_redis("kept", 1)
      @redis.cli("PUBLISH", "kept", "one")
      assert_equal "one", listener.hear
      later = WebsocketPeer.new(server.url, "kept").tap { |peer| @closing << peer }
      assert_equal %w[one subscribed], [later.hear, later.hear].sort
      server.stop
    end
  end

  def test_an_outage_delays_messages_and_stops_nobody
    KINDS.each_key do |kind|
      args = kind == :node ? %w[-w 2] : []
      server = start(kind, "-r", @redis.url, *args)
      near = peer(server, "c")
      wait_for_redis("c", 1)
      @redis.kill
      server.wait_for_log(/^! Redis at #{@redis.url} is not available: .*; trying again$/)
      30.times { |number| assert_equal "true", get(server, "/say?c=#{number}") }
      assert_equal "hello", get(server, "/")
      @redis.start
      server.wait_for_log(/^\* Redis at #{@redis.url} is available again after \d+\.\d s$/)
      wait_for_redis("c", 1)
      @redis.cli("PUBLISH", "c", "last")
      assert_equal [*0...30], heard_until("last", near)[..-2].map(&:to_i).sort
      assert_equal [1, 1], [/is not available/, /is available again/].map { |line| server.log.scan(line).size }, server.log
      server.stop
    end
  end

  def test_a_queue_that_is_full_refuses_and_says_so_once
    @redis.kill
    server = start(:node, env: { "OWN_REDIS" => @redis.url, "OWN_QUEUE" => "3" })
    answers = Array.new(5) { get(server, "/say?c=x") }
    assert_equal %w[true true true false false], answers
    @redis.start
    server.wait_for_log(/the queue is empty again; 2 messages or commands were lost/)
    assert_equal 1, server.log.scan("the queue is full (3 commands, 64 MiB); messages published now are lost").size
    assert_equal "true", get(server, "/say?c=x")
  end

  def test_messages_leave_before_the_end
    [[], %w[-w 2]].each do |args|
      server = start(:node, "-r", @redis.url, *args)
      server.wait_for_log(/^\* Redis at/)
      listener = peer(other = start(:node, "-r", @redis.url), "end")
      wait_for_redis("end", 1)
      get(server, "/say?end=last-words")
      assert_predicate server.stop(signal: "TERM"), :success?
      assert_equal "last-words", listener.hear
      other.stop
    end
  end

  def test_what_cannot_leave_is_a_line
    server = start(:node, "-r", @redis.url)
    server.wait_for_log(/^\* Redis at/)
    @redis.freeze_process
    3.times { get(server, "/say?c=x") }
    assert_predicate server.stop, :success?
    assert_match(/^! Redis at \S+: 3 messages were not sent$/, server.log)
  ensure
    @redis.thaw
  end

  # The first signal waits for Redis for two seconds, and says then what is lost.
  def test_a_second_signal_ends_it_at_once
    [[], %w[-w 1]].each do |args|
      server = start(:node, "-r", @redis.url, *args)
      server.wait_for_log(/^\* Redis at/)
      @redis.freeze_process
      get(server, "/say?c=x")
      server.signal("INT")
      server.wait_for_log(/Gracefully stopping/)
      assert_predicate server.stop, :success?
      assert_match(/Gracefully.*Gracefully.*Goodbye/m, server.log)
      refute_includes server.log, "were not sent"
      @redis.thaw
    end
  ensure
    @redis.thaw
  end

  def test_the_example_notifications_and_its_job_on_mri
    server = NodeProcess.new(File.join(NodeProcess::ROOT, "examples/notifications/config.ru"), args: ["-r", @redis.url, "-w", "2"])
    @closing << server
    browser = WebsocketPeer.new(server.url).tap { |peer| @closing << peer }
    wait_for_redis("notifications", 1)
    job = File.join(NodeProcess::ROOT, "examples/notifications/job.rb")
    output, status = Open3.capture2e({ "REDIS_URL" => @redis.url }, RbConfig.ruby, "-Ilib", job, "the report is ready", chdir: NodeProcess::ROOT)
    assert status.success?, output
    assert_equal "the report is ready", browser.hear
  end

  def test_a_connection_that_is_cut_off_comes_back
    server = start(:node, "-r", @redis.url)
    listener = peer(server, "c")
    wait_for_redis("c", 1)
    @redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
    server.wait_for_log(/is not available: (?:Redis closed the connection|Connection reset by peer).*is available again/m)
    get(server, "/say?c=again")
    assert_equal "again", listener.hear
  end

  # Redis has answered long ago.
  def test_a_process_that_was_busy_sends_nothing_twice
    server = NodeProcess.new(File.expand_path("redis_busy.ru", __dir__), env: { "OWN_REDIS" => @redis.url }).tap { |one| @closing << one }
    server.wait_for_log(/^\* Redis at/)
    get(server, "/busy")
    wait_until { get(server, "/") == "0" }
    assert_match(/^cmdstat_publish:calls=1,/, @redis.cli("INFO", "commandstats"))
    refute_includes server.log, "is not available"
  end

  def test_ordinary_commands_answer_as_on_mri
    answers = KINDS.keys.map do |kind|
      server = start(kind, env: { "OWN_REDIS" => @redis.url })
      %w[SET+k+7 INCR+k GET+none LRANGE+none+0+-1 RPUSH+l+a+b LRANGE+l+0+-1 NONSENSE].each { |words| assert_equal "true", get(server, "/cmd?#{words}") }
      wait_until { get(server, "/replies").include?("unknown command") }
      @redis.cli("FLUSHALL")
      get(server, "/replies").sub(/ERR.*/, "")
    end
    assert_equal '"OK" 8 nil [] 2 ["a", "b"] #<Rondo::PubSub::Redis::Error: ', answers.first
    assert_equal(*answers)
  end

  def test_what_redis_refuses_is_one_line
    server = redis(users: ["user default off", "user app on >pw ~* &app:* +@all"])
    node = start(:node, env: { "OWN_REDIS" => server.url("app:pw") })
    peer(node, "other")
    node.wait_for_log(/^! Redis at \S+: cannot subscribe to "other": NOPERM/)
    listener = peer(node, "app:news")
    get(node, "/say?app:news=hello")
    assert_equal "hello", listener.hear
  end
end
