# frozen_string_literal: true

# What the engine for Redis does not put into its queue. There is no Redis: it is not asked.
# SPDX-License-Identifier: MIT

require "test_helper"
require "stringio"
require "rondo"
require "rondo/pubsub/queued/kept"

class RedisLimitsTest < Minitest::Test
  REPLY_MAX = 3000
  LINE = "! Redis at redis://127.0.0.1:1: a message is longer than reply_max, and was not sent\n"

  def setup
    @log = StringIO.new
  end

  def test_messages_that_are_too_long_are_one_line
    engine = engine(Rondo::PubSub::Redis)
    3.times { refute engine.publish("c", "x" * REPLY_MAX) }
    assert_equal LINE, @log.string
  end

  def test_messages_of_a_stream_that_are_too_long_are_one_line
    engine = engine(Rondo::PubSub::RedisStreams)
    terms = Rondo::PubSub::Queued::Terms.new(10, 0, nil)
    3.times { refute engine.publish("c", "x" * REPLY_MAX, terms) }
    refute engine.publish("plain", "x" * REPLY_MAX)
    assert_equal LINE, @log.string
  end

  private

  def engine(kind)
    kind.new("redis://127.0.0.1:1", reply_max: REPLY_MAX, log: Rondo::Logger.new(io: @log))
  end
end
