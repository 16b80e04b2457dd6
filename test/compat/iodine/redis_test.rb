# frozen_string_literal: true

# The engine for Redis: replies of commands as iodine gives them, and messages between two servers.
# SPDX-License-Identifier: MIT

require "test_helper"
require "timeout"
require_relative "contender"
require "support/redis_server"
require "support/websocket_peer"

class IodineRedisTest < Minitest::Test
  KIND = ENV.fetch("RONDO_COMPAT", "rondo").sub("record", "iodine").to_sym
  # Ends when all replies are there. The wrong command is that of iodine's README.
  COMMANDS = <<~RUBY
    Iodine.threads = Iodine.workers = 1
    redis = Iodine::PubSub.default = Iodine::PubSub::Redis.new(ENV.fetch("OWN_REDIS"), ping: 50)
    p redis.is_a?(Iodine::PubSub::Engine)
    Iodine.run do
      p redis.cmd("SET", :key, 1).equal?(redis)
      redis.cmd("SET", "key", 1) { |reply| p reply }
      redis.cmd("INCR", "key") { |reply| p reply }
      redis.cmd("GET", "key") { |reply| p reply }
      redis.cmd("GET", "none") { |reply| p reply }
      redis.cmd("KEYS", "*") { |reply| p reply }
      redis.cmd("LPOP", "key") { |reply| p reply.class, reply[0, 10] }
      redis.cmd("CLIENT LIST") do |reply|
        puts reply[0, 20]
        Iodine.stop
      end
    end
    Iodine.listen(service: :http, port: "3000") { [200, {}, []] }
    Iodine.start
  RUBY

  def setup
    skip "iodine 0.7.60 is not installed (RONDO_TEST_IODINE)" if KIND == :iodine && !Contender::IODINE
    skip "redis-server is missing" unless ENV["PATH"].split(":").any? { |folder| File.executable?(File.join(folder, "redis-server")) }
    @redis = RedisServer.new
    @programs = []
  end

  def teardown
    @programs&.each(&:close)
    @redis&.close
  end

  def start(...)
    Contender.new(KIND, ...).tap { |program| @programs << program }
  end

  def test_replies
    program = start("commands.rb", text: COMMANDS, requires: ["iodine"], waits: false, env: { "OWN_REDIS" => @redis.url })
    assert_equal 0, program.finish
    assert_equal ["true", "true", "true", "2", '"2"', "nil", '["key"]', "String", '"-WRONGTYPE"', "-ERR unknown command"],
                 program.output.lines(chomp: true)
  end

  # The snippet of the README unchanged, with what it takes for granted before it, and an end. Redis is asked when the
  # server begins: before, Iodine.stop would do nothing.
  def test_readme_redis_cmd
    snippet = File.read(File.join(Contender::SNIPPETS, "readme_redis_cmd.rb.txt"))
    before = "Iodine.threads = Iodine.workers = 1\nIodine::PubSub.default = Iodine::PubSub::Redis.new(ENV.fetch('OWN_REDIS'))\n"
    after = "Iodine::PubSub.default.cmd('PING') { Iodine.stop }\nsleep 0.2\nIodine.start\n"
    program = start("cmd.rb", text: "#{before}#{snippet}\n#{after}",
                              requires: ["iodine"], waits: false, env: { "OWN_REDIS" => @redis.url })
    assert_equal 0, program.finish
    assert_match(/\A-ERR unknown command 'CLIENT LIST'.*\n\z/, program.output)
  end

  def test_two_servers
    one, two = Array.new(2) { start("redis.ru", args: ["-t", "1", "-w", "1", "-redis", @redis.url]) }
    assert_includes one.output, "* Redis support automatically detected.\n"
    ann = join(one, "Ann", 1)
    bob = join(two, "Bob", 2)
    ann.say("hello")
    [ann, bob].each { |peer| hear(peer, "Ann: hello") }
    bob.say("hi")
    [ann, bob].each { |peer| hear(peer, "Bob: hi") }
  ensure
    [ann, bob].compact.each(&:close)
  end

  private

  # What is published in the callback that subscribes may be at Redis before the subscription.
  def join(program, name, count)
    WebsocketPeer.new(program.url, name).tap do
      Timeout.timeout(Contender::DEADLINE) { IO.select(nil, nil, nil, 0.01) until @redis.cli("PUBSUB", "NUMSUB", "chat") == "chat\n#{count}" }
    end
  end

  def hear(peer, text)
    nil until peer.hear == text
  end
end
