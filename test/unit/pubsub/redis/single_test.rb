# frozen_string_literal: true

# How long an address that led to a master is not taken for a replica.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/redis"
require "rondo/pubsub/redis/single"

class RedisSingleTest < Minitest::Test
  Redis = Rondo::PubSub::Redis
  MASTER = ["master", 0, []].freeze
  REPLICA = ["slave", "127.0.0.1", 6379, "connected", 0].freeze

  # Keeps the question.
  class Link
    attr_reader :words, :block

    def ask_again(words, &block)
      @words = words
      @block = block
    end
  end

  # With a clock of the test.
  class Place < Redis::Single
    attr_accessor :now

    # What a new connection is asked before it is ready.
    def open(reply)
      find
      checks.map(&:last).each { |check| check.call(reply) }
      checks.size
    end
  end

  def setup
    @place = Place.new(Redis::Address.new("redis://127.0.0.1:1", {}))
    @place.now = 100.0
    @link = Link.new
    @place.watch(@link)
  end

  def test_a_replica_from_the_start_is_asked_once
    assert_equal %w[ROLE], @link.words
    refute @link.block.call(REPLICA)
    assert_equal 0, @place.open(MASTER)
  end

  def test_a_server_that_does_not_say_is_asked_once
    refute @link.block.call(refusal("NOPERM this user has no permissions to run the 'role' command"))
    refute @link.block.call(["sentinel", []])
    refute @link.block.call("OK")
    assert_equal 0, @place.open(MASTER)
  end

  def test_a_server_that_is_busy_is_asked_again
    assert @link.block.call(refusal("BUSY Redis is busy running a script."))
    assert @link.block.call(MASTER)
  end

  def test_a_new_connection_to_a_server_that_does_not_say
    @link.block.call(MASTER)
    error = assert_raises(Redis::Link::Refused) { @place.open(refusal("LOADING the dataset")) }
    assert_equal "LOADING the dataset", error.message
    2.times { assert_equal 1, @place.open(refusal("NOPERM no")) }
    assert_lost { @place.open(REPLICA) }
  end

  def test_a_master_that_becomes_a_replica_is_given_up
    2.times { assert @link.block.call(MASTER) }
    assert_lost { @link.block.call(REPLICA) }
    assert_lost { @place.open(REPLICA) }
    assert_equal 1, @place.open(MASTER)
    assert @link.block.call(MASTER)
    @place.now += 1000
    assert_lost { @link.block.call(REPLICA) }
  end

  def test_an_address_that_stays_with_a_replica_is_taken_after_a_while
    @link.block.call(MASTER)
    assert_lost { @place.open(REPLICA) }
    @place.now += 59
    assert_lost { @place.open(REPLICA) }
    @place.now += 1
    @place.open(REPLICA)
    assert_equal "it is a replica now", @place.found
    refute @link.block.call(REPLICA)
    assert_equal 0, @place.open(MASTER)
    assert_nil @place.found
  end

  private

  def refusal(text)
    Redis::Replies::Refusal.new(text)
  end

  def assert_lost(&)
    assert_equal "it has become a replica", assert_raises(Redis::Link::Broken, &).message
  end
end
