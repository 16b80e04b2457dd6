# frozen_string_literal: true

# How the Redis engine connects: passwords, users with rights, TLS, Unix sockets; the error when it cannot; and a Redis
# that breaks the protocol.
# SPDX-License-Identifier: MIT

require_relative "redis_case"
require "open3"

class RedisAccessTest < RedisCase
  def test_a_password
    server = redis("--requirepass", "secret/%")
    assert_round_trip connect(server.url(":secret%2F%25"))
  end

  def test_a_user_with_rights
    server = redis(users: ["user default off", "user app on >pw ~* &app:* +@all"])
    engine = connect(server.url("app:pw"))
    assert_round_trip engine, "app:news"
    engine.subscribe("other", false)
    engine.publish("other", "x")
    eventually("a refusal") { @log.string.include?('cannot subscribe to "other": NOPERM') }
    assert_round_trip engine, "app:more"
    eventually("the other refusal") { @log.string.match?(/can't publish|! Redis at \S+: NOPERM/) }
    assert_equal 1, @log.string.scan("can't publish").size + @log.string.scan("! Redis at #{server.url}: NOPERM").size
  end

  def test_a_wrong_password_is_one_line_without_the_password_and_a_new_try
    server = redis(users: ["user default on >right ~* &* +@all"])
    engine = engine(server.url("default:wrong"))
    assert_match(/\ARedis at #{server.url} is not available: WRONGPASS/, refusal_of(engine))
    assert_equal 1, @log.string.lines.size, @log.string
    refute_match(/wrong[^ ]*@|:wrong/, @log.string)
    server.cli("-a", "right", "ACL", "SETUSER", "default", ">wrong")
    engine.wait_until_connected(PATIENCE)
    assert_round_trip engine
  end

  def test_nobody_there_at_boot
    server = redis
    server.kill
    engine = engine(server.url)
    assert_equal "Redis at #{server.url} is not available: Connection refused", refusal_of(engine)
    assert engine.publish("c", "early")
    engine.subscribe("c", false)
    server.start
    engine.wait_until_connected(PATIENCE)
    assert_round_trip engine
    assert_equal 1, @log.string.scan("is not available").size
  end

  def test_tls
    server = redis(tls: true)
    assert_round_trip connect(server.url, ssl_params: { ca_file: server.ca_file })
  end

  def test_tls_with_a_certificate_nobody_knows
    server = redis(tls: true)
    assert_match(/certificate verify failed/, refusal_of(engine(server.url)))
  end

  def test_a_unix_socket
    server = redis(unix: true)
    engine = connect(server.url(nil, database: 2))
    assert_round_trip engine
    engine.cmd("SET", "where", "two")
    engine.flush(PATIENCE)
    assert_equal "two", server.cli("-n", "2", "GET", "where")
  end

  def test_addresses_that_are_none
    ["http://127.0.0.1", "redis://h:port", "redis://user:secret@h/zero", "redis://a b", "user:secret@h:6379",
     "redis://:a/secret@h", "redis://:a@secret@h", "garbage", "", "unix://", "redis://h:99999", "redis://h:0"].each do |url|
      error = assert_raises(Rondo::ConfigurationError, url) { Rondo::PubSub::Redis.new(url) }
      assert_match(/\Athis is not the address of a Redis server: /, error.message)
      refute_includes error.message, "secret"
    end
  end

  def test_an_engine_shows_no_password
    engine = engine("redis://user:secret@127.0.0.1:1/2")
    assert_equal "#<Rondo::PubSub::Redis Redis at redis://127.0.0.1:1/2>", engine.inspect
  end

  def test_a_redis_without_auth_repeats_the_password_and_we_do_not
    server = redis("--rename-command", "AUTH", "")
    engine = engine(server.url(":secret"))
    message = refusal_of(engine)
    assert_match(/is not available: ERR unknown command .AUTH/, message)
    refute_includes @log.string + message, "secret"
  end

  def test_a_redis_that_says_no_when_it_is_back
    server = redis
    engine = connect(server.url)
    server.kill
    eventually("an outage") { !engine.connected? }
    with_peer("-LOADING the dataset\n! of another line\r\n", server.port) do
      eventually("the new reason") { @log.string.include?("LOADING") }
    end
    lines = @log.string.lines.grep(/not available/)
    assert_equal 2, lines.size, @log.string
    assert_equal "! Redis at #{server.url} is not available: LOADING the dataset ! of another line; trying again\n", lines.last
  end

  def test_a_greeting_that_never_ends_has_a_deadline
    with_drip do |url|
      engine(url, timeout: SOON).start
      eventually("an outage") { @log.string.include?("is not available: no answer within #{SOON} s") }
    end
  end

  def test_close_does_not_wait_for_a_connection
    with_peer("") do |url, sockets|
      engine = engine(url.sub("redis", "rediss"), timeout: 10 * PATIENCE)
      engine.publish("c", "x")
      eventually("a connection") { sockets.any? }
      Timeout.timeout(PATIENCE) { engine.close(0) }
    end
    assert_match(/1 messages were not sent/, @log.string)
  end

  def test_without_the_gem_there_is_one_line
    program = <<~RUBY
      $LOAD_PATH.reject! { |path| path.include?("redis-client") }
      require "rondo"
      begin
        Rondo::PubSub::Redis.new("redis://127.0.0.1")
      rescue Rondo::ConfigurationError => e
        puts e.message
      end
    RUBY
    env = %w[RUBYOPT RUBYLIB BUNDLE_GEMFILE BUNDLER_SETUP].to_h { |name| [name, nil] }
    env.update("GEM_HOME" => @empty = Dir.mktmpdir, "GEM_PATH" => @empty)
    out, = Open3.capture2e(env, RbConfig.ruby, "-Ilib", "-e", program)
    assert_equal "Redis needs the gem redis-client: add it to the Gemfile\n", out
  ensure
    FileUtils.rm_rf(@empty)
  end

  def test_a_redis_that_talks_nonsense_is_left_alone_for_a_while
    { "HTTP/1.1 400 Bad Request\r\n\r\n" => /not the Redis protocol/,
      "+PONG\r\n+OK\r\n" => /a reply that belongs to no command/,
      "$99999999999\r\n" => /a reply of more than/,
      ("*1\r\n" * 2000) => /inside each other/ }.each do |bytes, reason|
      with_peer(bytes) do |url|
        engine = engine(url)
        engine.subscribe("c", false)
        assert engine.publish("c", "x")
        eventually(reason.inspect) { @log.string.match?(reason) }
        assert_operator engine.queued, :==, 1
        engine.close(0)
      end
      @log.truncate(0)
    end
  end

  def test_messages_of_a_strange_shape_are_dropped
    bytes = "+PONG\r\n*2\r\n$7\r\nmessage\r\n:1\r\n"
    with_peer(bytes) do |url|
      engine(url).start
      eventually("an outage") { @log.string.include?("is not available") }
    end
    assert_empty @outlet.received
  end

  private

  def assert_round_trip(engine, channel = "c")
    engine.subscribe(channel, false)
    engine.publish(channel, "there and back")
    got = take(1).first while got != [channel, "there and back"]
    assert_equal [channel, "there and back"], got
  end

  # Answers the same to every client, whatever it sends.
  def with_peer(bytes, port = 0)
    server = TCPServer.new("127.0.0.1", port)
    sockets = []
    thread = Thread.new do
      loop do
        sockets << (socket = server.accept)
        socket.write(bytes)
      end
    rescue IOError
      nil
    end
    yield "redis://127.0.0.1:#{server.addr[1]}", sockets
  ensure
    server.close
    thread.join
    sockets.each(&:close)
  end

  # Sends one more byte each time, and never a whole answer.
  def with_drip
    server = TCPServer.new("127.0.0.1", 0)
    thread = Thread.new do
      socket = server.accept
      socket.write("+")
      IO.select(nil, nil, nil, 0.02) while socket.write("P")
    rescue IOError, SystemCallError
      nil
    end
    yield "redis://127.0.0.1:#{server.addr[1]}"
  ensure
    server.close
    thread.join
  end
end
