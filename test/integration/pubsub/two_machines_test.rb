# frozen_string_literal: true

# Two servers that share only a Redis: a message published at one reaches the clients of the other, whatever happens to
# Redis meanwhile. Single mode; test/integration/cluster has the tests of clusters.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/redis_server"
require "support/websocket_peer"

class TwoMachinesTest < ShellCase
  APP = <<~RUBY
    class Subscriber
      def initialize(path) = @path = path
      def on_open(client)
        client.subscribe(@path.delete_prefix("/"), match: @path.include?("*") ? :redis : nil)
        client.write("subscribed")
        client.publish(@path.delete_prefix("/"), "own") if @path.start_with?("/own")
      end
      def on_message(client, data) = client.publish(*data.split("=", 2))
    end

    run lambda { |env|
      env["rack.upgrade"] = Subscriber.new(env["PATH_INFO"]) if env["rack.upgrade?"]
      channel, message = env["QUERY_STRING"].split("=", 2)
      answer = channel ? Rondo.publish(channel, message).to_s : "hello"
      [200, { "content-type" => "text/plain" }, [answer]]
    }
  RUBY

  def setup
    super
    @redis = RedisServer.new
    @peers = []
    write "config.ru", APP
  end

  def teardown
    @peers.each(&:close)
    super
    @redis.close
  end

  def test_messages_cross_over_and_the_publisher_gets_its_own
    one = start("-r", @redis.url)
    two = start(env: { "RONDO_REDIS_URL" => @redis.url, "REDIS_URL" => "redis://127.0.0.1:1" })
    a, b, pattern = subscriber(one, "news"), subscriber(two, "news"), subscriber(two, "ne*")
    wait_for_redis("news", 2, patterns: 1)
    a.say("news=from a client")
    assert_equal "true", get(two, "/?news=from-a-request").body
    [a, b, pattern].each { |peer| assert_equal ["from a client", "from-a-request"], [peer.hear, peer.hear].sort }
    assert_equal "3", @redis.cli("PUBLISH", "news", "from outside"), "two by name, one by pattern"
    [a, b, pattern].each { |peer| assert_equal "from outside", peer.hear }
  end

  # Redis knows of the subscription before it gets the message, in one process and in workers.
  def test_who_subscribes_and_publishes_in_one_callback_gets_that_message
    [[], %w[-w 1]].each do |workers|
      server = start("-r", @redis.url, *workers)
      20.times { |number| assert_equal "own", subscriber(server, "own-#{workers.size}-#{number}").hear }
    end
  end

  def test_an_outage_delays_messages_and_stops_nobody
    one = start("-r", @redis.url)
    two = start("-r", @redis.url)
    near, far = subscriber(one, "c"), subscriber(two, "c")
    wait_for_redis("c", 2)
    get(one, "/?c=0")
    assert_equal %w[0 0], [near.hear, far.hear]
    @redis.kill
    [one, two].each { |server| server.wait_for_log(/Redis at .* is not available/) }
    sent = (1..50).map(&:to_s)
    sent.each { |number| assert_equal "true", get(one, "/?c=#{number}").body }
    @redis.start
    [one, two].each { |server| server.wait_for_log(/Redis at .* is available again/) }
    wait_for_redis("c", 2)
    assert_equal sent, heard_until("50", near) # it is sent when this server knows that it is subscribed again
    get(two, "/?c=last")
    assert_equal "last", near.hear
    # A client that came back later missed the messages for which Redis had no subscriber.
    assert_equal "last", heard_until("last", far).last
  end

  def test_a_frozen_redis_leaves_http_alone_and_messages_leave_at_the_end
    one = start("-r", @redis.url)
    one.wait_for_log(/Redis at/)
    @redis.freeze_process
    20.times { |number| assert_equal "true", get(one, "/?c=#{number}").body }
    assert_equal "hello", get(one).body
    @redis.thaw
    listener = IO.popen(["redis-cli", "-p", @redis.port.to_s, "SUBSCRIBE", "end"])
    3.times { listener.gets }
    get(one, "/?end=last-words")
    assert_predicate one.stop, :success?
    assert_equal %w[message end last-words], Array.new(3) { listener.gets.chomp }
  ensure
    Process.kill("TERM", listener.pid)
    listener.close
  end

  def test_a_restart_comes_back_to_redis
    server = start("-r", @redis.url)
    server.wait_for_log(/Redis at/)
    from = server.log.bytesize
    server.signal("USR2")
    [/Redis at/, /Use Ctrl-C to stop/].each { |line| server.wait_for_log(line, from: from) }
    peer = subscriber(server, "c")
    get(server, "/?c=after")
    assert_equal "after", peer.hear
  end

  def test_a_redis_that_is_required_and_absent_keeps_the_server_from_starting
    write "rondo.rb", "redis_url 'redis://h:p'\n"
    assert_complaint 1, /this is not the address of a Redis server/, rondo("-C", "rondo.rb", "-q")
    result = rondo("check", "-r", "redis://127.0.0.1:1")
    assert_match(/^failed  redis: Redis at redis:..127.0.0.1:1 is not available: Connection refused$/, result.out)
  end

  private

  # Redis learns of a subscription a moment after the client.
  def wait_for_redis(channel, count, patterns: 0)
    eventually("#{count} subscriptions of #{channel}") do
      @redis.cli("PUBSUB", "NUMSUB", channel).split.last == count.to_s && @redis.cli("PUBSUB", "NUMPAT") == patterns.to_s
    end
  end

  def heard_until(last, peer)
    [].tap { |all| all << peer.hear until all.last == last }
  end

  def subscriber(server, path)
    WebsocketPeer.new(server.url, path).tap do |peer|
      @peers << peer
      assert_equal "subscribed", peer.hear
    end
  end
end
