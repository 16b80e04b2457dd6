# frozen_string_literal: true

# The subscriptions that Redis gets: with a connection the last change of each channel, without one nothing.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/redis"

class RedisSubscriptionsTest < Minitest::Test
  # A connection that records the commands, and answers when the test says so.
  class Link
    attr_reader :asked

    def initialize
      @asked = []
      @answers = []
    end

    def ask(words, &answer)
      @asked << words.join(" ")
      @answers << answer
    end

    def answer(count = @answers.size, reply = [])
      @answers.shift(count).each { |answer| answer.call(reply) }
    end

    def asked!
      @asked.tap { @asked = [] }
    end
  end

  def setup
    @refused = []
    @subscriptions = Rondo::PubSub::Redis::Subscriptions.new(on_refusal: ->(*words) { @refused << words }) { |*| nil }
    @link = Link.new
  end

  def come_and_go(count)
    count.times do |number|
      @subscriptions.add("guest #{number}", false)
      @subscriptions.remove("guest #{number}", false)
    end
  end

  def test_nothing_is_kept_while_there_is_no_connection
    come_and_go(100_000)
    assert_equal 0, @subscriptions.pending
    @subscriptions.add("stays", false)
    assert_equal 0, @subscriptions.pending
    @subscriptions.send_to(@link)
    assert_equal ["SUBSCRIBE stays", "PING"], @link.asked
  end

  def test_of_each_channel_the_last_word_is_kept
    @subscriptions.add("known", false)
    @subscriptions.send_to(@link)
    @link.asked!
    come_and_go(100_000)
    @subscriptions.remove("known", false)
    @subscriptions.add("known", false)
    @subscriptions.add("known", true)
    assert_equal 1, @subscriptions.pending
    @subscriptions.send_to(@link)
    assert_equal ["PSUBSCRIBE known", "PING"], @link.asked!
    @subscriptions.send_to(@link)
    assert_empty @link.asked
    @subscriptions.remove("known", false)
    @subscriptions.forget_link
    assert_equal 0, @subscriptions.pending
  end

  # Even if the change itself was taken back: otherwise no answer would come for it.
  def test_a_message_waits_until_what_was_asked_before_it_is_confirmed
    @subscriptions.add("known", false)
    @subscriptions.send_to(@link)
    refute @subscriptions.reached?(@subscriptions.asked)
    @link.answer(1)
    refute @subscriptions.reached?(@subscriptions.asked)
    @link.answer
    assert @subscriptions.reached?(@subscriptions.asked)
    come_and_go(2)
    refute @subscriptions.reached?(@subscriptions.asked)
    @subscriptions.send_to(@link)
    @link.answer
    assert @subscriptions.reached?(@subscriptions.asked)
  end

  def test_a_refusal_that_lasts_counts_as_an_answer
    ["NOPERM no permissions to access a channel", "ERR unknown command, with args beginning with: 'BUSY'", "BUSYKEY x"].each do |text|
      @subscriptions.add(text, false)
      @subscriptions.send_to(@link)
      @link.answer(1, refusal(text))
      assert_equal [text, text], @refused.pop
      @link.answer
      assert @subscriptions.reached?(@subscriptions.asked)
    end
  end

  def test_a_refusal_that_passes_ends_the_connection
    %w[LOADING READONLY MISCONF OOM BUSY CLUSTERDOWN MASTERDOWN TRYAGAIN NOREPLICAS MOVED ASK].each do |word|
      [true, false, :shard].each { |kind| @subscriptions.add("c", kind) }
      @subscriptions.send_to(@link)
      3.times { assert_passes(word) }
      @link.answer
      @subscriptions.forget_link
    end
    assert_empty @refused
  end

  def test_a_channel_that_is_not_left_ends_the_connection
    @subscriptions.add("c", false)
    @subscriptions.send_to(@link)
    @link.answer
    @subscriptions.remove("c", false)
    @subscriptions.send_to(@link)
    assert_passes("BUSY")
  end

  # Nothing was refused before it: answers come in order.
  def test_a_refused_ping_confirms_what_was_asked_before
    @subscriptions.add("c", false)
    @subscriptions.send_to(@link)
    @link.answer(1)
    @link.answer(1, refusal("MISCONF Redis is configured to save RDB snapshots"))
    assert @subscriptions.reached?(@subscriptions.asked)
  end

  private

  def refusal(text)
    Rondo::PubSub::Redis::Replies::Refusal.new(text)
  end

  def assert_passes(word)
    error = assert_raises(Rondo::PubSub::Redis::Link::Refused) { @link.answer(1, refusal("#{word} for now")) }
    assert_equal "#{word} for now", error.message
  end
end
