# frozen_string_literal: true

# The engine of a cluster is in its master: two connections to Redis for all workers, before and after every restart,
# and no published message is lost on the way.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require "redis-client"
require_relative "../../support/redis_server"
require_relative "../../support/websocket_peer"

class ClusterEngineTest < ClusterCase
  PUSH = <<~'RUBY'
    class Listener
      def on_open(client)
        client.subscribe("news")
        client.write("pid #{Process.pid}")
      end
      def on_message(client, data) = client.publish("news", data)
    end
    run lambda { |env|
      env["rack.upgrade"] = Listener.new if env["rack.upgrade?"]
      message = env["QUERY_STRING"]
      answer = message.empty? ? Rondo::PubSub.default.inspect : Rondo.publish("news", message).to_s
      [200, { "content-type" => "text/plain" }, [answer]]
    }
  RUBY

  def setup
    super
    write "config.ru", PUSH
    @redis = RedisServer.new
    @peers = []
  end

  def teardown
    @peers.each(&:close)
    super
    @redis.close
  end

  def peers_of_all(server)
    by_pid = {}
    until by_pid.size == 2
      peer = WebsocketPeer.new(server.url)
      @peers << peer
      by_pid[peer.hear] ||= peer
    end
    by_pid.values
  end

  def connections
    @redis.clients.size
  end

  def wait_for_subscribers(count)
    eventually("#{count} subscribed") { @redis.cli("PUBSUB", "NUMSUB", "news").split.last == count.to_s }
  end

  def test_two_connections_for_all_workers
    server = cluster("-r", @redis.url)
    one, two = peers_of_all(server)
    wait_for_subscribers(1)
    eventually("two connections") { connections == 2 }
    assert_equal "Rondo::PubSub::MASTER", get(server).body
    one.say("from a client")
    @redis.cli("PUBLISH", "news", "from outside")
    [one, two].each { |peer| assert_equal ["from a client", "from outside"], [peer.hear, peer.hear].sort }
    other = start("-r", @redis.url)
    get(other, "/?from-another-machine")
    [one, two].each { |peer| assert_equal "from-another-machine", peer.hear }
    other.stop
    assert server.stop.success?
    wait_for_subscribers(0)
  end

  def test_whole_restarts_lose_nothing
    server = cluster("-r", @redis.url)
    listener = Outsider.new(@redis)
    sent = []
    publisher = Thread.new do
      until @over
        number = sent.size.to_s
        sent << number if get(server, "/?#{number}").body == "true"
      end
    end
    2.times { after_signal(server, "USR2", /^- Worker 1 \(PID: \d+\) booted/) }
    @over = true
    publisher.join
    heard = listener.heard(sent.size)
    assert_equal sent, heard.sort_by(&:to_i), server.log # of two workers, so of two publishers
    eventually("one connection, nobody has subscribed, and the test's") { connections == 2 }
  end

  def test_what_is_published_while_redis_is_away
    server = cluster("-r", @redis.url)
    one, two = peers_of_all(server)
    wait_for_subscribers(1)
    @redis.kill
    server.wait_for_log(/Redis at .* is not available/)
    20.times { |number| assert_equal "true", get(server, "/?#{number}").body }
    @redis.start
    # Both workers published them. They are two publishers, so there is no order between them.
    [one, two].each { |peer| assert_equal (0...20).to_a, Array.new(20) { peer.hear.to_i }.sort }
  end

  # The engine has stopped by then, and continues. It sends the messages that were published meanwhile.
  def test_a_restart_that_fails
    app = File.join(@folder, "app")
    FileUtils.mkdir_p(app)
    write "app/config.ru", PUSH
    write "app/rondo.rb", "before_restart { File.rename('../app', '../moved') if File.exist?('bad') }\n"
    server = cluster("-C", "rondo.rb", "-r", @redis.url, spawn: { chdir: app }, env: { "PWD" => app })
    one, two = peers_of_all(server)
    wait_for_subscribers(1)
    write "app/bad", ""
    after_signal(server, "USR2", /^! cannot restart: .*No such file/)
    assert_equal "true", get(server, "/?still-there").body
    [one, two].each { |peer| assert_equal "still-there", peer.hear }
    eventually("two connections") { connections == 2 }
  end

  # A client of another program.
  class Outsider
    def initialize(server)
      @connection = RedisClient.config(url: server.url).new_client.pubsub
      @connection.call("SUBSCRIBE", "news")
      @connection.next_event(ShellCase::PATIENCE)
    end

    def heard(count)
      Array.new(count) { @connection.next_event(ShellCase::PATIENCE)&.last }
    end
  end
end
