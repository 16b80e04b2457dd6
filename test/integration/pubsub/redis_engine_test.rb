# frozen_string_literal: true

# The Redis engine alone, against a real Redis that is stopped, killed and started again. The messages that it delivers
# are caught before they reach a server.
# SPDX-License-Identifier: MIT

require_relative "redis_case"

class RedisEngineTest < RedisCase
  def setup
    super
    @redis = redis
  end

  def test_messages_come_back_in_order_with_their_encoding
    engine = connect
    engine.subscribe("news", false)
    sent = [*(1..300).map(&:to_s), "gr\u00fc\u00df dich", "\xff\x00\r\n".b, ""]
    sent.each { |message| assert engine.publish("news", message) }
    got = take(sent.size)
    assert_equal sent.map { |message| ["news", message] }, got
    assert_equal([Encoding::UTF_8, Encoding::BINARY], got[300, 2].map { |_, message| message.encoding })
  end

  def test_the_publisher_gets_its_own_message_because_subscriptions_come_first
    engine = connect
    50.times do |index|
      engine.subscribe("c#{index}", false)
      engine.publish("c#{index}", "x")
    end
    assert_equal((0...50).map { |index| ["c#{index}", "x"] }, take(50))
  end

  def test_a_message_that_several_subscriptions_match_is_handed_on_once
    engine = connect
    [["a.b", false], ["a.*", true], ["*.b", true], ["a.?", true]].each { |words| engine.subscribe(*words) }
    %w[a.b a.b a.c x.b a.c a.c].each { |channel| engine.publish(channel, "same") }
    engine.unsubscribe("a.b", false)
    engine.publish("a.b", "same")
    engine.unsubscribe("a.*", true)
    engine.publish("a.b", "same")
    engine.publish("other", "nobody's")
    engine.publish("a.z", "end")
    assert_equal %w[a.b a.b a.c x.b a.c a.c a.b a.b a.z], take(9).map(&:first)
    assert_empty @outlet.received
  end

  def test_a_name_that_is_not_ascii_is_handed_on_once_too
    engine = connect
    [["gr\u00fcn", false], ["*", true]].each { |words| engine.subscribe(*words) }
    engine.publish("gr\u00fcn", "x")
    engine.publish("end", "y")
    assert_equal [["gr\u00fcn", "x"], %w[end y]], take(2)
  end

  def test_a_message_too_long_to_come_back_is_refused
    engine = connect(reply_max: 100_000)
    pattern = "#{"[c]" * 300}*"
    engine.subscribe(pattern, true)
    refute engine.publish("c" * 300, "x" * 100_000)
    length = 100_000
    length -= 1 until engine.publish("c" * 300, "x" * length)
    assert_equal length, take(1).first.last.bytesize
    refute_includes @log.string, "is not available"
    assert_equal 1, @log.string.scan("a message is longer than reply_max, and was not sent").size
  end

  def test_a_publisher_that_is_interrupted_leaves_nothing_half_done
    engine = engine(@redis.url)
    timeout = TracePoint.new(:c_call) { |call| Thread.current.raise(Timeout::Error) if call.method_id == :pipe }
    assert_raises(Timeout::Error) { timeout.enable { engine.publish("c", "x") } }
    assert engine.publish("c", "y")
    assert_equal 0, engine.flush(PATIENCE)
  end

  def test_what_nobody_here_can_take_is_one_line_however_often
    engine = connect
    engine.subscribe("*", true)
    5.times { engine.publish("c" * 2000, "x") }
    engine.publish("c", "end")
    assert_equal [%w[c end]], take(1)
    assert_equal 1, @log.string.scan("could not be delivered: the name of a channel must have").size
  end

  def test_publishers_and_subscribers_outside
    engine = connect
    engine.subscribe("out*", true)
    eventually("a subscription") { @redis.cli("PUBLISH", "outside", "from the shell") == "1" }
    assert_equal ["outside", "from the shell"], take(1).first
  end

  def test_two_connections_and_no_more
    engine = connect
    3.times { |index| engine.subscribe("c#{index}", false) }
    engine.publish("c0", "x")
    engine.cmd("GET", "nothing")
    take(1)
    eventually("two connections") { @redis.clients.size == 2 }
  end

  def test_who_only_publishes_needs_one_connection
    connect.publish("c", "x")
    eventually("one connection") { @redis.clients.size == 1 }
  end

  def test_ordinary_commands
    engine = connect
    replies = Thread::Queue.new
    assert engine.cmd("SET", :key, 7)
    [%w[INCR key], %w[GET none], %w[LRANGE list 0 -1], %w[LPUSH key x], %w[RPUSH list a b], %w[LRANGE list 0 -1],
     %w[NONSENSE]].each { |words| engine.cmd(*words) { |reply| replies << reply } }
    values = Array.new(7) { Timeout.timeout(PATIENCE) { replies.pop } }
    assert_equal [8, nil, []], values[0, 3]
    assert_instance_of Rondo::PubSub::Redis::Error, values[3]
    assert_match(/\AWRONGTYPE/, values[3].message)
    assert_equal [2, %w[a b]], values[4, 2]
    assert_match(/unknown command/, values[6].message)
  end

  def test_a_block_that_raises_harms_nothing
    engine = connect
    reply = Thread::Queue.new
    engine.cmd("PING") { raise "my own fault" }
    engine.cmd("PING") { |text| reply << text }
    assert_equal "PONG", Timeout.timeout(PATIENCE) { reply.pop }
    assert_match(/my own fault/, @log.string)
  end

  def test_commands_that_would_change_the_connection_are_refused
    engine = connect
    [%w[subscribe c], %w[MONITOR], %w[client reply off], %w[QUIT], %w[multi], %w[AUTH x], []].each do |words|
      assert_raises(ArgumentError) { engine.cmd(*words) }
    end
  end

  def test_what_was_published_meanwhile_arrives_after_a_restart_once_and_in_order
    engine = connect
    engine.subscribe("c", false)
    engine.subscribe("p*", true)
    engine.publish("c", "before")
    assert_equal [%w[c before]], take(1)
    @redis.kill
    eventually("an outage") { !engine.connected? }
    sent = (1..500).flat_map { |number| [["c", number.to_s], ["pp", number.to_s]] }
    sent.each { |channel, message| assert engine.publish(channel, message) }
    engine.subscribe("late", false)
    engine.publish("late", "new")
    @redis.start
    assert_equal [*sent, %w[late new]], take(sent.size + 1)
    assert_empty @outlet.received
    assert_equal 1, @log.string.scan("is not available").size, @log.string
    assert_equal 1, @log.string.scan("is available again").size, @log.string
  end

  def test_the_queue_is_bounded_in_number_and_bytes_and_says_so_once
    engine = connect(queue: 10, queue_bytes: 1000)
    @redis.kill
    eventually("an outage") { !engine.connected? }
    assert_equal [true] * 10 + [false] * 5, Array.new(15) { |number| engine.publish("c", number.to_s) }
    assert_equal 10, engine.queued
    assert_equal 1, @log.string.scan("the queue is full").size
    @redis.start
    eventually("room") { engine.queued.zero? }
    eventually("the sum") { @log.string.include?("empty again; 5 messages or commands were lost") }
    refute engine.publish("c", "x" * 1000)
  end

  def test_a_frozen_redis_blocks_nobody_and_loses_nothing
    engine = connect(timeout: SOON)
    engine.subscribe("c", false)
    engine.publish("c", "0")
    take(1)
    @redis.freeze_process
    sent = (1..200).map(&:to_s)
    sent.each { |message| assert engine.publish("c", message) }
    eventually("an outage") { @log.string.include?("no answer within #{SOON} s") }
    @redis.kill
    @redis.start
    assert_equal sent, take(200).map(&:last)
  end

  def test_a_command_that_was_sent_and_has_no_answer_says_so
    engine = connect(timeout: SOON)
    replies = Thread::Queue.new
    engine.cmd("BLPOP", "never", 0) { |reply| replies << reply }
    error = Timeout.timeout(PATIENCE) { replies.pop }
    assert_instance_of Rondo::PubSub::Redis::Error, error
    assert_match(/lost the connection before it replied/, error.message)
    engine.cmd("PING") { |reply| replies << reply }
    assert_equal "PONG", Timeout.timeout(PATIENCE) { replies.pop }
  end

  def test_an_idle_connection_is_pinged_and_stays
    engine = connect
    engine.subscribe("c", false)
    eventually("pings") { @redis.cli("INFO", "commandstats")[/cmdstat_ping:calls=(\d+)/, 1].to_i > 6 }
    assert engine.connected?
    refute_includes @log.string, "is not available"
  end

  def test_a_connection_that_is_cut_off_comes_back
    engine = connect
    engine.subscribe("c", false)
    engine.publish("c", "1")
    take(1)
    @redis.cli("CLIENT", "KILL", "TYPE", "pubsub")
    eventually("a new one") { @log.string.include?("is available again") }
    engine.publish("c", "2")
    assert_equal [%w[c 2]], take(1)
  end

  def test_database_number_counts_for_commands
    other = engine(@redis.url(database: 3))
    other.cmd("SET", "where", "three")
    assert_equal 0, other.flush(PATIENCE)
    assert_equal "three", @redis.cli("-n", "3", "GET", "where")
  end

  def test_a_forked_process_has_connections_of_its_own
    engine = connect
    engine.subscribe("c", false)
    engine.publish("c", "0")
    take(1)
    pid = fork do
      engine.publish("c", "of the child")
      exit!(engine.flush(PATIENCE) + (engine.connected? ? 0 : 1))
    end
    assert_predicate Process.wait2(pid).last, :success?
    engine.publish("c", "of the parent")
    assert_equal ["of the child", "of the parent"], take(2).map(&:last)
    refute_includes @log.string, "is not available"
  end

  def test_close_sends_what_is_queued_and_then_nothing
    engine = connect
    listener = connect
    listener.subscribe("c", false)
    listener.publish("c", "ready")
    take(1)
    100.times { |number| engine.publish("c", number.to_s) }
    engine.close
    refute engine.publish("c", "too late")
    assert_equal((0...100).map(&:to_s), take(100).map(&:last))
    eventually("those of the listener alone") { @redis.clients.size == 2 }
  end

  def test_close_says_what_was_not_sent
    engine = connect
    @redis.freeze_process
    3.times { engine.publish("c", "x") }
    engine.close(0.05)
    @redis.thaw
    assert_match(/3 messages were not sent/, @log.string)
  end
end
