# frozen_string_literal: true

# Redis Streams at boot, at the end and across restarts: what is said, and that nothing is lost.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "support/resuming"

class StreamsBootTest < StreamsCase
  include Restarting

  # Answers as an old Redis does, or does not say how old it is.
  class OldRedis
    attr_reader :port

    def initialize(version = "5.0.14")
      @version = version
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @thread = Thread.new { loop { serve(@listener.accept) } }
    end

    def close
      @thread.kill
      @listener.close
    end

    private

    def serve(socket)
      Thread.new do
        while (line = socket.gets)
          socket.write("+PONG\r\n") if line.start_with?("PING")
          say_version(socket) if @version && line.start_with?("INFO")
        end
      rescue SystemCallError
        nil
      end
    end

    def say_version(socket)
      text = "redis_version:#{@version}\r\n"
      socket.write("$#{text.bytesize}\r\n#{text}\r\n")
    end
  end

  def test_redis_away_at_boot
    @redis.kill
    a = start("-w", "1", "--redis-streams", @redis.url) # another worker may publish before the hub knows the subscription
    a.wait_for_log(/! Redis at .* is not available: Connection refused; trying again/)
    reader = reader(a, "kept:x")
    reader.read_until { reader.opened }
    5.times { |number| publish(a, "kept:x", number) }
    @redis.start
    reader.read_until { reader.seen.size == 5 }
    assert_equal (0..4).map(&:to_s), reader.seen.sort
    assert_equal "5", @redis.cli("XLEN", "{rondo}:s:kept:x")
  end

  def test_a_client_that_comes_back_while_redis_is_away_is_told
    write "rondo.rb", "replay_timeout_ms 200\n"
    a = server("-C", "rondo.rb")
    @redis.kill
    a.wait_for_log(/is not available/)
    reader = reader(a, "kept:x", after: "5")
    reader.read_until { reader.resets == 1 }
    a.wait_for_log(/Subscribed 127.0.0.1 without the messages that it missed: .* the engine that keeps it is away/)
  end

  # More than a worker asks for at once wait for Redis; what the server has needs none.
  def test_what_is_here_is_there_while_redis_is_away
    a = server
    hot = reader(a, "kept:hot")
    wait_for_subscribers("kept:hot", 1)
    publish(a, "kept:hot", "one")
    hot.read_until { hot.seen == ["one"] }
    first = hot.last_id
    again = reader(a, "kept:hot", after: first) # so that the copy is here
    publish(a, "kept:hot", "two")
    again.read_until { again.seen == ["two"] }
    @redis.freeze_process
    cold = Array.new(40) { |number| reader(a, "kept:cold#{number}", after: first) }
    4.times do
      back = reader(a, "kept:hot", after: first)
      back.read_until { back.seen == ["two"] }
      assert_equal 0, back.resets
    end
    @redis.thaw
    publish(a, "kept:cold39", "three")
    cold.last.read_until { cold.last.seen == ["three"] }
  end

  # The hub goes on at once. What it was handed is not all that Redis keeps.
  def test_a_restart_while_redis_does_not_answer
    write "rondo.rb", "redis_required\n"
    a = server("-C", "rondo.rb")
    b = server
    first = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    publish(a, "kept:x", "one")
    first.read_until { first.seen == ["one"] }
    first.close
    wait_for_subscribers("kept:x", 0)
    publish_in_turn(b, "kept:x", ["two"])
    other = reader(a, "kept:y") # the last id that came is behind what is missing
    wait_for_subscribers("kept:y", 1)
    publish(b, "kept:y", "three")
    other.read_until { other.seen == ["three"] }
    @redis.freeze_process
    from = a.log.bytesize
    a.signal("USR2")
    a.wait_for_log(/^Rondo starting in cluster mode/, from: from)
    back = reader(a, "kept:x", after: first.last_id)
    a.wait_for_log(/is not available: no answer within 5 s/, from: from)
    @redis.thaw
    back.read_until { back.seen == ["two"] }
    assert_equal 0, back.resets
  end

  # USR1 keeps the master, and with it the engine. USR2 hands on what it has.
  def test_what_waits_for_redis_and_a_restart
    a = server
    @redis.kill
    publish(a, "kept:x", "one")
    publish(a, "plain", "two")
    from = a.log.bytesize
    a.signal("USR1")
    a.wait_for_log(/Worker 1 .* phase: 1/, from: from)
    from = a.log.bytesize
    @redis.start
    a.wait_for_log(/is available again/, from: from)
    eventually("one in Redis") { length_of("kept:x") == 1 }
    @redis.kill
    publish(a, "kept:x", "three")
    publish(a, "plain", "four")
    a.signal("USR2")
    a.wait_for_log(/^- 2 published messages wait for Redis at /, from: from)
    a.wait_for_log(/Worker 1 .* phase: 2/, from: from)
    @redis.start
    eventually("three in Redis") { @redis.cli("XRANGE", "{rondo}:s:kept:x", "-", "+").include?("three") }
  end

  # The new configuration has none: they are messages of this server.
  def test_what_waits_for_redis_when_the_next_program_has_no_engine
    write "rondo.rb", "redis_streams '#{@redis.url}'\n"
    a = start("-w", "2", "-C", "rondo.rb")
    a.wait_for_log(/Redis at/)
    client = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    @redis.kill
    publish(a, "kept:x", "one")
    write "rondo.rb", ""
    from = a.log.bytesize
    a.signal("USR2")
    a.wait_for_log(/^- 1 published messages wait for Redis at /, from: from)
    client.read_until { client.seen == ["one"] }
  end

  # What is known of a channel without messages is a time, above the last id that Redis gave.
  def test_a_restart_when_nothing_was_published_for_days
    days_ago = ((Time.now.to_i - (3 * 86_400)) * 1_000_000).to_s
    %w[begin clock].each { |key| @redis.cli("SET", "{rondo}:#{key}", days_ago) }
    a = server
    client = reader(a, "kept:x", after: days_ago)
    wait_for_subscribers("kept:x", 1)
    client.read_until { client.resets == 1 }
    from = a.log.bytesize
    a.signal("USR2")
    a.wait_for_log(/Worker 1 .* phase: 1/, from: from)
    @redis.cli("CLIENT", "KILL", "TYPE", "normal") # what is known is compared on each connection
    a.wait_for_log(/is available again/, from: from)
    assert_equal days_ago, @redis.cli("GET", "{rondo}:begin").strip
  end

  # Nothing ever came from Redis, so nothing is known of its ids.
  def test_a_restart_before_any_message_came_does_not_begin_anew
    other = server
    publish_in_turn(other, "kept:x", ["one"])
    began = @redis.cli("GET", "{rondo}:begin")
    a = server
    reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    from = a.log.bytesize
    a.signal("USR2")
    a.wait_for_log(/Worker 1 .* phase: 1/, from: from)
    @redis.cli("CLIENT", "KILL", "TYPE", "normal") # what is known is compared on each connection
    a.wait_for_log(/is available again/, from: from)
    assert_equal began, @redis.cli("GET", "{rondo}:begin")
  end

  def test_a_wrong_password_and_no_workers_and_a_bad_prefix
    @redis.cli("CONFIG", "SET", "requirepass", "secret")
    write "rondo.rb", "redis_required\n"
    url = "redis://:wrong@127.0.0.1:#{@redis.port}"
    assert_complaint 1, /\A.*Redis at .* is not available: WRONGPASS/,
                     rondo("-w", "1", "-C", "rondo.rb", "-q", "--redis-streams", url)
    assert_complaint 1, /redis_streams needs workers/, rondo("-q", "--redis-streams", @redis.url)
    write "rondo.rb", "redis_prefix 'a*'\n"
    assert_complaint 1, /a prefix in Redis has 1 to 64 letters/,
                     rondo("-w", "1", "-C", "rondo.rb", "-q", "--redis-streams", @redis.url)
  end

  # Whoever sets it believes that nobody else hears the channels.
  def test_a_prefix_without_streams
    write "rondo.rb", "redis_prefix 'shop'\n"
    %w[0 1].each do |workers|
      assert_complaint 1, /redis_prefix needs redis_streams: with redis_url the names of channels have no prefix/,
                       rondo("-w", workers, "-C", "rondo.rb", "-q", "-r", @redis.url)
    end
    a = start("-w", "1", "-C", "rondo.rb", env: { "REDIS_URL" => @redis.url })
    a.wait_for_log(/! REDIS_URL is not used: redis_prefix needs redis_streams/)
  end

  def test_a_redis_that_is_required_has_an_address
    write "rondo.rb", "redis_required\n"
    %w[0 1].each do |workers|
      assert_complaint 1, /redis_required needs redis_url or redis_streams: there is no address of a Redis/,
                       rondo("-w", workers, "-C", "rondo.rb", "-q")
    end
  end

  def test_an_old_redis
    old = OldRedis.new
    a = start("-w", "1", "--redis-streams", "redis://127.0.0.1:#{old.port}")
    a.wait_for_log(/Redis 5.0.14 is too old: streams need 6.2 or newer/)
  ensure
    old.close
  end

  # Its answer may come later than that of PING.
  def test_a_redis_that_may_be_too_old_is_not_there
    old = OldRedis.new(nil)
    a = start("-w", "1", "--redis-streams", "redis://127.0.0.1:#{old.port}")
    a.wait_for_log(/is not available: no answer within 5 s/)
    refute_match(/\* Redis at/, a.log)
  ensure
    old.close
  end
end
