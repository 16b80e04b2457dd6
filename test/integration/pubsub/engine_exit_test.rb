# frozen_string_literal: true

# The end of a server with workers whose engine still has messages: they leave if the engine is there, and are counted
# in one line if it is not.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/nats_server"
require "support/redis_server"

class EngineExitTest < ShellCase
  APP = <<~'RUBY'
    Rondo::PubSub.history("kept", size: 1000)
    run lambda { |env|
      channel, count = env["QUERY_STRING"].split("=")
      done = Integer(count || 0).times.count { |number| Rondo.publish(channel, "message #{number}") }
      [200, { "content-type" => "text/plain" }, [done.to_s]]
    }
  RUBY
  MANY = 300
  # Configuration by address, channel, and how many messages the engine's server has.
  REDIS = [->(url) { "redis_url #{url.inspect}" }, "news",
           ->(redis) { redis.cli("INFO", "commandstats")[/cmdstat_publish:calls=(\d+)/, 1].to_i }].freeze
  STREAMS = [->(url) { "redis_streams #{url.inspect}" }, "kept",
             ->(redis) { redis.cli("XLEN", "{rondo}:s:kept").to_i }].freeze
  NATS = [->(url) { "nats #{url.inspect}" }, "news", ->(nats) { nats.monitor("varz").fetch("in_msgs") }].freeze
  JETSTREAM = [->(url) { "nats #{url.inspect}, jetstream: true" }, "kept",
               lambda { |nats|
                 nats.monitor("jsz?streams=1").dig("account_details", 0, "stream_detail", 0, "state", "messages")
               }].freeze

  def setup
    super
    write "config.ru", APP
  end

  def teardown
    super
    @engine&.close
  end

  def test_redis = leaves(RedisServer.new, *REDIS)
  def test_redis_streams = leaves(RedisServer.new, *STREAMS)
  def test_nats = leaves(NatsServer.new, *NATS)
  def test_jetstream = leaves(NatsServer.new("-js", "-sd", "FOLDER/store"), *JETSTREAM)

  def test_redis_that_is_away = counts_what_is_lost("redis://127.0.0.1:%d", *REDIS)
  def test_redis_streams_that_is_away = counts_what_is_lost("redis://127.0.0.1:%d", *STREAMS)
  def test_nats_that_is_away = counts_what_is_lost("nats://127.0.0.1:%d", *NATS)
  def test_jetstream_that_is_away = counts_what_is_lost("nats://127.0.0.1:%d", *JETSTREAM)

  private

  def leaves(engine, lines, channel, count)
    @engine = engine
    server = serve(lines.call(engine.url))
    server.wait_for_log(/^\* (Redis|NATS) at/)
    assert_equal MANY.to_s, get(server, "/?#{channel}=#{MANY}").body
    assert_predicate server.stop, :success?
    eventually("#{MANY} messages") { count.call(engine) == MANY }
    refute_match(/not sent|not reached|lost/, server.log)
  end

  def counts_what_is_lost(url, lines, channel, _count)
    HeldPort.open do |port|
      server = serve(lines.call(format(url, port)))
      assert_equal "7", get(server, "/?#{channel}=7").body
      assert_predicate server.stop, :success?
      assert_equal 1, server.log.scan(/^! (?:Redis|NATS) at \S+: 7 messages were not sent$/).size, server.log
      refute_match(/not reached/, server.log)
    end
  end

  def serve(line)
    write "rondo.rb", "#{line}\n"
    start("-w", "2", "-C", "rondo.rb")
  end
end
