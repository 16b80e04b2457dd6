# frozen_string_literal: true

# An engine whose address names Sentinels: it goes where the master is.
# SPDX-License-Identifier: MIT

require_relative "../redis_case"
require "rondo/pubsub/redis_streams"
require "rondo/pubsub/streams/pump"
require "support/redis_ha"

class SentinelTest < RedisCase
  # Answers every client the same about the master.
  class Fake
    PONG = "+PONG\r\n"

    attr_reader :asked

    # @param answer [String] of the protocol
    def initialize(answer)
      @answer = answer
      @asked = 0
      @listener = TCPServer.new("127.0.0.1", 0)
      @thread = Thread.new { loop { serve(@listener.accept) } }
    end

    # @param port [Integer] of the master
    def self.of(port)
      new("").tap { |fake| fake.port = port }
    end

    # @param port [Integer] of another master
    def port=(port)
      @answer = "*2\r\n$9\r\n127.0.0.1\r\n$#{port.to_s.size}\r\n#{port}\r\n"
    end

    def place
      "127.0.0.1:#{@listener.addr[1]}"
    end

    def close
      @thread.kill
      @listener.close
    end

    private

    def serve(socket)
      Thread.new do
        while (line = socket.gets)
          socket.write(PONG) if line.start_with?("PING")
          next unless line.start_with?("get-master-addr")

          @asked += 1
          socket.write(@answer)
        end
      rescue SystemCallError
        nil
      end
    end
  end

  def setup
    super
    @fakes = []
  end

  def teardown
    super
    [@redis, *@fakes].compact.each(&:close)
  end

  # One does not answer, one names a replica, one names no address, one no Redis: the others count.
  def test_sentinels_that_do_not_help
    master = redis
    replica = redis("--replicaof", "127.0.0.1", master.port.to_s)
    bad = [fake("*-1\r\n"), fake("-ERR no\r\n"), fake("*2\r\n$3\r\na b\r\n$2\r\n-1\r\n"), fake(""), fake("+OK\r\n"), fake("$99999999999\r\n"),
           add(Fake.of(replica.port)), add(Fake.of(1))]
    good = add(Fake.of(master.port))
    engine = engine(url([*bad.first(3), good, *bad.drop(3)]))
    engine.wait_until_connected(PATIENCE)
    assert_match(/the master is 127\.0\.0\.1:#{master.port}$/, @log.string)
    engine.close(0)
    engine = engine(url([bad[6], good]))
    engine.wait_until_connected(PATIENCE)
    assert_match(/is not available: 127\.0\.0\.1:#{replica.port} is not a master now; trying again/, @log.string)
  end

  def test_nobody_knows_the_name
    engine = engine(url([fake("*-1\r\n"), fake("*-1\r\n")]))
    assert_match(/is not available: no Sentinel names the master: no master has the name main$/, refusal_of(engine))
    eventually("more attempts") { @fakes.sum(&:asked) > 6 }
    assert_equal 1, @log.string.lines.size, @log.string
  end

  def test_tls_to_the_master_and_none_to_sentinels
    server = redis(tls: true)
    place = url([add(Fake.of(server.port))]).sub("redis", "rediss")
    connect("#{place}?sentinel_tls=no&ca_file=#{server.ca_file}")
    assert_match(/certificate verify failed/, refusal_of(engine("#{place}?sentinel_tls=no")))
  end

  def test_the_master_is_found_and_found_again_when_it_is_another_one
    @redis = RedisFailover.new
    first, second = @redis.nodes
    engine = connect
    engine.subscribe("c", false)
    engine.publish("c", "1")
    assert_equal [["c", "1"]], take(1)
    assert_match(%r{^\* Redis at redis\+sentinel://\S+/main: the master is 127\.0\.0\.1:#{first.port}$}, @log.string)
    first.kill
    eventually("an outage") { !engine.connected? }
    answer = Thread::Queue.new
    engine.cmd("SET", "key", "value") { |reply| answer << reply }
    engine.publish("c", "2")
    assert_equal [["c", "2"]], take(1)
    assert_equal "OK", Timeout.timeout(PATIENCE) { answer.pop }
    assert_equal "value", second.cli("GET", "key")
    assert_match(/is available again after [\d.]+ s: the master is 127\.0\.0\.1:#{second.port}$/, @log.string)
    assert_equal 3, @log.string.lines.size, @log.string
  end

  # The old master is cut off: it refuses to write, and nobody closes its connections.
  def test_a_master_that_is_cut_off_and_was_replaced
    old, new = Array.new(2) { redis }
    sentinel = add(Fake.of(old.port))
    engine = Rondo::PubSub::RedisStreams.new(url([sentinel]), log: log, **TERMS).tap { |each| @engines << each }
    engine.wait_until_connected(PATIENCE)
    old.cli("CONFIG", "SET", "min-replicas-to-write", "1")
    ids = Thread::Queue.new
    engine.publish("kept", "1", Rondo::PubSub::Queued::Terms.new(9, 0, nil)) { |id| ids << id }
    eventually("a line") { @log.string.include?("does not write now: NOREPLICAS") }
    asked = sentinel.asked
    eventually("a question") { sentinel.asked > asked }
    assert_predicate engine, :connected?
    sentinel.port = new.port
    assert_operator Timeout.timeout(PATIENCE) { ids.pop }, :>, 1
    assert_equal %w[0 1], [old, new].map { |node| node.cli("XLEN", "{rondo}:s:kept") }
    assert_match(/is not available: another node is the master now; trying again$/, @log.string)
    assert_match(/is available again after [\d.]+ s: the master is 127\.0\.0\.1:#{new.port}$/, @log.string)
  end

  private

  def fake(answer)
    add(Fake.new(answer))
  end

  def add(fake)
    fake.tap { @fakes << fake }
  end

  def url(fakes)
    "redis+sentinel://#{fakes.map(&:place).join(",")}/main"
  end
end
