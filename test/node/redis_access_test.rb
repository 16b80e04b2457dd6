# frozen_string_literal: true

# How Redis is reached on Node: addresses, passwords, TLS, a Unix socket; a Redis that breaks its protocol; and that a
# server without Redis loads nothing of it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "support/node_process"
require "support/raw_client"
require "support/redis_server"
require "support/waiting"
require "support/websocket_peer"
require "timeout"

class NodeRedisAccessTest < Minitest::Test
  include Waiting

  APP = File.expand_path("redis.ru", __dir__)
  NOWHERE = "redis://127.0.0.1:1"

  def setup
    @closing = []
  end

  def teardown
    @closing.reverse_each { |one| one.is_a?(ServerProcess) ? one.kill : one.close }
  end

  def redis(*words, **options)
    RedisServer.new(*words, **options).tap { |server| @closing << server }
  end

  def start(*args, env: {}, app: APP)
    NodeProcess.new(app, args: args, env: env).tap { |server| @closing << server }
  end

  def get(server, path)
    RawClient.open(server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  # @return [Array(Array<String>, Integer)] lines without those of the build, and the exit code
  def refusal(*args, env: {})
    output, status = Open3.capture2e({ "RONDO_NODE_CACHE" => NodeProcess::CACHE, **env }, *NodeProcess::COMMAND, "-p", "0", *args, APP)
    [output.lines(chomp: true).grep_v(/\A\* Buil|\ARondo starting/), status.exitstatus]
  end

  def assert_round_trip(server)
    listener = WebsocketPeer.new(server.url, "own").tap { |peer| @closing << peer }
    assert_equal %w[subscribed own], [listener.hear, listener.hear]
  end

  def test_an_address_that_is_none_is_one_line
    lines = ["rondo: this is not the address of a Redis server: http://x"]
    assert_equal [lines, 1], refusal("-r", "http://x")
    assert_equal [lines, 1], refusal("-r", "http://x", "-w", "2")
    assert_equal [lines, 1], refusal(env: { "RONDO_REDIS_URL" => "http://x" })
    output, status = refusal(env: { "OWN_REDIS" => "redis://user:secret@h/zero" })
    assert_equal ["config.ru: Rondo::ConfigurationError: this is not the address of a Redis server: redis://h/zero", "rondo: the application does not load", 1],
                 [output.first.sub("the application", "config.ru"), output.last, status]
  end

  def test_addresses_that_are_none
    program = "const { parse } = require(#{File.join(NodeProcess::ROOT, "node/lib/rondo/node/engine/redis/address.js").inspect});" \
              "for (const url of process.argv.slice(1)) { try { console.log(parse(url).shown); } catch (error) { console.log(error.message); } }"
    bad = ["http://127.0.0.1", "redis://h:port", "redis://user:secret@h/zero", "redis://a b", "user:secret@h:6379", "redis://:a/secret@h",
           "redis://:a@secret@h", "garbage", "", "unix://", "redis://h:99999", "redis://h:0", "redis://u:%zz@h", "redis://h/-1"]
    good = %w[redis://h redis://h:1/2 rediss://u:p@h:7/ redis://secret@[::1]:8 unix:///a/b unix://:secret@/a?db=3 redis://h?db=4]
    output, = Open3.capture2e("node", "-e", program, *bad, *good)
    lines = output.lines(chomp: true)
    lines.first(bad.size).zip(bad) { |line, url| assert_match(/\Athis is not the address of a Redis server: /, line, url) }
    refute_includes output, "secret@"
    refute_includes output, ":secret"
    assert_equal %w[redis://h:6379 redis://h:1/2 rediss://h:7 redis://[::1]:8 unix:///a/b unix:///a?db=3 redis://h:6379/4], lines.last(good.size)
  end

  def test_the_order_of_command_line_and_variables
    server = start("-r", "#{NOWHERE}/1", env: { "RONDO_REDIS_URL" => "#{NOWHERE}/2", "REDIS_URL" => "#{NOWHERE}/3" })
    assert_includes get(server, "/default"), "#{NOWHERE}/1"
    assert_includes get(start(env: { "RONDO_REDIS_URL" => "#{NOWHERE}/2", "REDIS_URL" => "#{NOWHERE}/3" }), "/default"), "#{NOWHERE}/2"
    assert_includes get(start(env: { "RONDO_REDIS_URL" => "", "REDIS_URL" => "#{NOWHERE}/3" }), "/default"), "#{NOWHERE}/3"
    server.wait_for_log(%r{^! Redis at #{NOWHERE}/1 is not available: Connection refused; trying again$})
  end

  def test_a_common_variable_that_is_meant_for_others
    server = start(env: { "REDIS_URL" => "http://u:secret@x" })
    assert_equal "Rondo::PubSub::CLUSTER", get(server, "/default")
    assert_includes server.log, "! REDIS_URL is not used: this is not the address of a Redis server: http://x\n"
  end

  def test_what_the_application_has_chosen_stays
    server = start("-r", "#{NOWHERE}/1", env: { "OWN_REDIS" => "#{NOWHERE}/2" })
    assert_includes get(server, "/default"), "#{NOWHERE}/2"
  end

  def test_a_password
    server = redis("--requirepass", "secret/%+")
    assert_round_trip start("-r", server.url(":secret%2F%25%2B"))
  end

  def test_a_wrong_password_is_one_line_without_it
    server = redis(users: ["user default on >right ~* &* +@all"])
    node = start("-r", server.url("default:wrong"))
    node.wait_for_log(/^! Redis at #{server.url} is not available: WRONGPASS/)
    server.cli("-a", "right", "ACL", "SETUSER", "default", ">wrong")
    node.wait_for_log(/is available again/)
    assert_round_trip node
    assert_equal 1, node.log.scan("is not available").size
    refute_match(/:wrong/, node.log)
  end

  def test_a_redis_without_auth_repeats_the_password_and_we_do_not
    server = redis("--rename-command", "AUTH", "")
    node = start("-r", server.url(":secret"))
    node.wait_for_log(/is not available: ERR unknown command .AUTH/)
    refute_includes node.log, "secret"
  end

  def test_tls
    server = redis(tls: true)
    assert_round_trip start(env: { "OWN_REDIS" => server.url, "OWN_CA" => server.ca_file })
    assert_round_trip start("-r", server.url, "-w", "1", env: { "NODE_EXTRA_CA_CERTS" => server.ca_file })
    stranger = start("-r", server.url)
    stranger.wait_for_log(/is not available: certificate verify failed/)
  end

  def test_a_unix_socket_and_a_database
    server = redis(unix: true)
    node = start(env: { "OWN_REDIS" => server.url(nil, database: 2) })
    assert_round_trip node
    get(node, "/cmd?SET+where+two")
    wait_until { server.cli("-n", "2", "GET", "where") == "two" }
  end

  def test_nobody_there_at_boot
    server = redis
    server.kill
    node = start("-r", server.url, "-w", "1")
    node.wait_for_log(/is not available: Connection refused/)
    assert_equal "true", get(node, "/say?c=early")
    server.start
    node.wait_for_log(/is available again/)
    assert_round_trip node
  end

  # Each of them ends the connection, and nothing of it stays in memory.
  def test_a_redis_that_breaks_its_protocol
    { "HTTP/1.1 400 Bad Request\r\n\r\n" => /not the Redis protocol/, "+PONG\r\n+OK\r\n" => /not the Redis protocol|belongs to no command/,
      "$99999999999\r\n" => /a reply of more than 100000 bytes/, "*1\r\n" * 2000 => /inside each other/, "+" => /no answer within 1 s/ }.each do |bytes, reason|
      seconds = bytes == "+" ? "1" : "60"
      with_peer(bytes) do |url|
        node = start(env: { "OWN_REDIS" => url, "OWN_REPLY_MAX" => "100000", "OWN_TIMEOUT" => seconds })
        assert_equal "true", get(node, "/say?c=x")
        node.wait_for_log(/is not available: .*#{reason}.*; trying again/)
        assert_equal "hello", get(node, "/")
        node.stop
      end
    end
  end

  def test_a_handshake_of_tls_that_never_ends_leaves_no_connection
    with_peer("") do |url, sockets|
      node = start(env: { "OWN_REDIS" => url.sub("redis", "rediss"), "OWN_REPLY_MAX" => "100000", "OWN_TIMEOUT" => "1" })
      get(node, "/say?c=x")
      node.wait_for_log(/is not available: no answer within 1 s/)
      wait_until { sockets.size >= 3 }
      Timeout.timeout(PATIENCE) { sockets.first(2).each { |socket| assert_equal 22, socket.read.getbyte(0), "no handshake" } }
    end
  end

  def test_a_frozen_redis_counts_as_lost
    server = redis
    node = start(env: { "OWN_REDIS" => server.url, "OWN_REPLY_MAX" => "100000", "OWN_TIMEOUT" => "1" })
    assert_round_trip node
    server.freeze_process
    get(node, "/say?own=x")
    node.wait_for_log(/is not available: no answer within 1 s/)
    server.thaw
    node.wait_for_log(/is available again/)
  end

  def test_a_message_too_long_to_come_back_is_refused
    server = redis
    node = start(env: { "OWN_REDIS" => server.url, "OWN_REPLY_MAX" => "3000" })
    assert_equal "false", get(node, "/say?c=#{"x" * 3000}")
    assert_equal "true", get(node, "/say?c=#{"x" * 1000}")
  end

  def test_a_message_from_outside_that_nobody_can_take
    server = redis
    node = start("-r", server.url, "-w", "1")
    listener = WebsocketPeer.new(node.url, "*").tap { |peer| @closing << peer }
    listener.hear
    wait_until { server.cli("PUBSUB", "NUMPAT") == "1" }
    2.times { server.cli("PUBLISH", "c" * 2000, "x") }
    2.times { server.cli("EVAL", "redis.call('PUBLISH', 'c', string.rep('x', 2000000))", "0") }
    server.cli("PUBLISH", "c", "end")
    assert_equal "end", listener.hear
    assert_equal 1, node.log.scan("a message from Redis could not be delivered: the name of a channel must have 1 to 1024 bytes").size
    assert_equal 1, node.log.scan("a message from Redis could not be delivered: it has 2000000 bytes").size
  end

  # What waits on MRI is a Promise here.
  def test_waiting_for_redis_is_a_promise
    Dir.mktmpdir do |folder|
      app = File.join(folder, "config.ru")
      File.write(app, <<~'RUBY')
        # backtick_javascript: true
        redis = Rondo::PubSub::Redis.new(ENV["OWN_REDIS"])
        answer = ->(text) { [200, {}, [text]] }
        run lambda { |env|
          case env["PATH_INFO"]
          when "/wait" then `#{redis.wait_until_connected(0.05)}.then(() => #{answer.call("here")}, (error) => #{answer}(error.message))`
          when "/flush" then redis.publish("c", "x") && `#{redis.flush(60)}.then((left) => #{answer}(String(left)))`
          else `#{redis.close(60)}.then(() => #{answer}(#{[redis]}[0].$publish("c", "x").toString()))`
          end
        }
      RUBY
      server = redis
      server.kill
      node = start(app: app, env: { "OWN_REDIS" => server.url })
      assert_match(/\ARedis at #{server.url} is not available: /, get(node, "/wait"))
      wait_until { get(node, "/wait").end_with?("Connection refused") }
      server.start
      wait_until { get(node, "/wait") == "here" }
      assert_equal %w[0 false], [get(node, "/flush"), get(node, "/close")]
    end
  end

  def test_a_server_without_redis_loads_nothing_of_it
    Dir.mktmpdir do |folder|
      app = File.join(folder, "config.ru")
      File.write(app, "# backtick_javascript: true\nrun ->(_env) { [200, {}, [`Object.keys(require.cache).join(\"\\n\")`]] }\n")
      server = redis
      loaded = [[], ["-r", server.url]].map { |args| get(start(*args, app: app), "/").lines.map { |path| File.basename(path.chomp) }.grep_v(/uws/) }
      assert_equal [%w[application.js main.js server.js], %w[application.js main.js redis.js server.js]], loaded.map(&:sort)
    end
  end

  private

  # Answers the same to every client, whatever it sends.
  def with_peer(bytes)
    server = TCPServer.new("127.0.0.1", 0)
    sockets = []
    thread = Thread.new do
      loop do
        sockets << (socket = server.accept)
        socket.write(bytes)
      rescue Errno::ECONNRESET, Errno::EPIPE
        nil
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
end
