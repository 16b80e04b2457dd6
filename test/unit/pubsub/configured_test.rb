# frozen_string_literal: true

# Which engine the settings name, which process may make it, and the errors of such settings.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/config/configuration"
require "rondo/pubsub/configured"
require "stringio"
require "support/stuck_engine"

class ConfiguredEngineTest < Minitest::Test
  NOWHERE = "redis://127.0.0.1:1"

  class Stuck < Rondo::PubSub::Engine
    prepend StuckEngine
  end

  def setup
    @log = StringIO.new
  end

  def teardown
    @engine&.close(0) if @engine.respond_to?(:close)
    Rondo::PubSub.log = nil
  end

  def test_nobody_asks
    assert_nil make
  end

  def test_the_command_line_comes_before_both_variables
    env = { "RONDO_REDIS_URL" => "redis://b", "REDIS_URL" => "redis://c" }
    assert_equal "redis://a", settings(typed: { redis_url: ["redis://a", "command line"] }, env: env)[:redis_url]
    assert_equal "redis://b", settings(env: env)[:redis_url]
    assert_equal "redis://c", settings(env: { "REDIS_URL" => "redis://c", "RONDO_REDIS_URL" => "" })[:redis_url]
  end

  def test_an_address_makes_redis_which_goes_on_trying
    @engine = make(env: { "RONDO_REDIS_URL" => "#{NOWHERE}/2" })
    assert_equal "Redis at #{NOWHERE}/2", @engine.name
    assert @engine.publish("c", "kept")
  end

  def test_a_redis_that_is_required
    error = assert_raises(Rondo::Error) { make(file: "redis_url #{NOWHERE.inspect}\nredis_required") }
    assert_equal "Redis at #{NOWHERE} is not available: Connection refused", error.message
  end

  def test_a_bad_address_ends_the_start_unless_it_may_be_meant_for_others
    assert_raises(Rondo::ConfigurationError) { make(env: { "RONDO_REDIS_URL" => "http://x" }) }
    assert_nil make(env: { "REDIS_URL" => "http://x" })
    assert_equal "! REDIS_URL is not used: this is not the address of a Redis server: http://x\n", @log.string
  end

  # REDIS_URL is often meant for others.
  def test_two_engines
    both = "redis_url #{NOWHERE.inspect}\nnats \"nats://127.0.0.1:1\""
    error = assert_raises(Rondo::ConfigurationError) { make(file: both) }
    assert_equal "nats and redis_url are both set, but one engine carries the messages: keep one of them", error.message
    error = assert_raises(Rondo::ConfigurationError) { make(file: both.sub("redis_url", "redis_streams")) }
    assert_match(/\Anats and redis_streams are both set/, error.message)
    @engine = make(file: both.lines.last, env: { "REDIS_URL" => NOWHERE })
    assert_match(/NATS/, @engine.inspect)
  end

  def test_a_block_makes_any_engine
    assert_same Rondo::PubSub::PROCESS, make(file: "redis_url #{NOWHERE.inspect}\npubsub_engine { Rondo::PubSub::PROCESS }")
    assert_nil make(file: "pubsub_engine { nil }")
    error = assert_raises(Rondo::ConfigurationError) { make(file: "pubsub_engine { 42 }") }
    assert_equal "pubsub_engine: an engine must respond to subscribe, unsubscribe, publish", error.message
  end

  def test_what_the_application_has_chosen_stays
    chosen = Rondo::PubSub::Engine.new
    Rondo::PubSub.default = chosen
    assert_nil Rondo::PubSub::Configured.open(settings(file: "pubsub_engine { Rondo::PubSub::Engine.new }"), nil)
    assert_same chosen, Rondo::PubSub.default
    Rondo::PubSub.detach(chosen)
    @engine = Rondo::PubSub::Configured.open(settings(file: "pubsub_engine { Rondo::PubSub::Engine.new }"), nil)
    assert_same @engine, Rondo::PubSub.default
  ensure
    Rondo::PubSub.detach(Rondo::PubSub.default)
  end

  def test_an_engine_that_is_stuck_does_not_keep_the_process_from_ending
    engine = Stuck.new
    Rondo::PubSub.default = engine
    telling = Thread.new { Rondo::PubSub.interest("a", false, true) { true } }
    engine.began.pop
    closing = Thread.new { Rondo::PubSub::Configured.close(engine, Rondo::Logger.new(io: @log)) }
    assert closing.join(30), "waits for the engine"
    assert_same Rondo::PubSub::CLUSTER, Rondo::PubSub.default
    assert_empty @log.string
  ensure
    engine.gate.close
    telling.join
  end

  private

  def settings(typed: {}, file: "", env: {})
    configuration = Rondo::Configuration.new
    Rondo::Configuration::Verbs.new(configuration).instance_eval(file)
    Rondo::Settings::Resolved.new(typed, configuration.values, Rondo::Settings.from_environment(env))
  end

  def make(**given)
    Rondo::PubSub::Configured.make(settings(**given), Rondo::Logger.new(io: @log), patience: 0.2)
  end
end
