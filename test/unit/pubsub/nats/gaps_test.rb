# frozen_string_literal: true

# What a hub does not take now is offered again, in its order: gaps before the messages behind them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/redis/pump"
require "rondo/pubsub/nats/stream"
require "rondo/pubsub/streams/publisher"

class GapsTest < Minitest::Test
  Nats = Rondo::PubSub::Nats
  CONFIG = { "max_msgs_per_subject" => 2, "max_age" => 0, "max_bytes" => -1, "num_replicas" => 1, "duplicate_window" => 120_000_000_000 }.freeze
  CREATED = "2026-01-01T00:00:00Z"
  LATER = "2026-01-02T00:00:00Z"
  AT = 1_767_225_600_000_000 # CREATED
  LATER_AT = AT + 86_400_000_000

  # Requests, and the connection.
  class Peer
    attr_reader :asked, :place

    def initialize = @asked = []
    def open(name) = name
    def shut(_name) = nil
    def info = { "version" => "2.9.10" }

    def ask(subject, words = "", **, &block)
      @place = words[:config].slice(:opt_start_seq, :opt_start_time).values if subject.include?("CONSUMER.CREATE")
      @asked << [subject, block]
    end

    def answer(part, words)
      found = @asked.find { |subject, _| subject.include?(part) }
      @asked.delete(found).last.call(words)
    end
  end

  # The hub. `full`: what it does not take yet.
  class Outlet
    attr_reader :seen
    attr_accessor :full

    def initialize
      @seen = []
      @full = []
    end

    def item(item)
      word = [item.channel, item.text || "gap"]
      return false if @full.include?(word)

      @seen << word
    end
  end

  def setup
    @outlet = Outlet.new
    begin_with("x" => 1, "y" => 1)
    connect(0)
    consumer(0)
    bring("x", 1, 1, 0)
    assert_equal [%w[x 1]], @outlet.seen
    @outlet.seen.clear
    @stream.forget_link
  end

  def test_a_gap_comes_before_what_a_limit_has_left
    @outlet.full = [%w[x gap]]
    connect(9)
    consumer(2)
    bring("x", 8, 1, 1)
    bring("x", 9, 2, 0)
    assert_empty @outlet.seen
    refute_predicate @stream, :live?
    @outlet.full = []
    read_again { [["x", 8, 1, 1], ["x", 9, 2, 0]].each { |words| bring(*words) } }
    assert_equal [%w[x gap], %w[x 8], %w[x 9]], @outlet.seen
    assert_predicate @stream, :live?
  end

  # The hub takes one of two: that one is not told again.
  def test_a_stream_that_was_made_anew_is_told_to_all
    @outlet.full = [%w[y gap]]
    connect(0, LATER)
    consumer(0)
    assert_equal [%w[x gap]], @outlet.seen
    refute_predicate @stream, :live?
    read_again { nil }
    assert_equal [%w[x gap]], @outlet.seen
    @outlet.full = []
    read_again { nil }
    assert_equal [%w[x gap], %w[y gap]], @outlet.seen
    assert_predicate @stream, :live?
  end

  def test_nobody_is_told_who_has_left
    @outlet.full = [%w[y gap]]
    connect(0, LATER)
    consumer(0)
    @stream.forget("y")
    read_again { nil }
    assert_equal [%w[x gap]], @outlet.seen
    assert_predicate @stream, :live?
  end

  # The number of the last message says nothing: the other stream has as many.
  def test_a_stream_that_was_made_anew_while_its_consumer_was_silent_is_told
    connect(1)
    consumer(0)
    @stream.take(Nats::Message.new("", @name, nil, { "" => "409 Consumer Deleted" }, ""))
    refute_predicate @stream, :live?
    inform(1, LATER)
    consumer(1)
    bring("x", 1, 1, 0, LATER_AT)
    assert_equal [%w[x gap], %w[y gap], %w[x 1]], @outlet.seen
    assert_predicate @stream, :live?
  end

  # Nothing says so while nobody reads.
  def test_a_stream_that_was_made_anew_while_the_hub_took_nothing_is_told
    @outlet.full = [%w[x 2]]
    connect(2)
    consumer(1)
    bring("x", 2, 1, 0)
    @outlet.full = []
    @last = [0, LATER]
    read_again { nil }
    assert_equal [%w[x gap], %w[y gap]], @outlet.seen
  end

  # Nobody misses anything, and nobody is told.
  def test_the_last_message_that_was_read_is_read_again
    connect(2)
    assert_equal [1], @peer.place
    consumer(2)
    bring("x", 1, 1, 1)
    bring("x", 2, 2, 0)
    assert_equal [%w[x 2]], @outlet.seen
    assert_equal [0, true], [@stream.floor, @stream.live?]
  end

  def test_a_stream_that_has_lost_its_last_messages_is_told_to_all
    lose_two_of_three
    connect(1)
    ask_again
    assert_equal ["2026-01-01T00:00:00.000004Z"], @peer.place
    consumer(0)
    assert_equal [%w[x gap], %w[y gap]], @outlet.seen
    assert_equal [AT + 3, true], [@stream.floor, @stream.live?]
    bring("y", 2, 1, 0, LATER_AT)
    assert_equal %w[y 2], @outlet.seen.last
    assert_equal 3, @outlet.seen.size
  end

  # Others have written some meanwhile, but not as many.
  def test_messages_at_the_numbers_of_those_that_are_lost_are_read
    lose_two_of_three
    connect(2)
    ask_again
    consumer(1)
    bring("y", 2, 1, 0, LATER_AT)
    assert_equal [%w[x gap], %w[y gap], %w[y 2]], @outlet.seen
    @stream.forget_link
    connect(2)
    assert_equal [2], @peer.place, "told once"
  end

  # It has just become the leader.
  def test_a_nats_that_does_not_have_all_yet_has_lost_nothing
    lose_two_of_three
    connect(1)
    @last = [3]
    ask_again
    assert_equal [3], @peer.place
    consumer(1)
    bring("x", 3, 1, 0)
    assert_empty @outlet.seen
    assert_equal [0, true], [@stream.floor, @stream.live?]
  end

  # They have written more than was lost, so that the numbers say nothing.
  def test_another_message_at_the_number_of_the_last_one_that_was_read
    lose_two_of_three
    connect(4)
    assert_equal [3], @peer.place
    consumer(2)
    bring("x", 3, 1, 1, LATER_AT)
    assert_equal ["2026-01-01T00:00:00.000004Z"], @peer.place
    bring("x", 4, 2, 0, LATER_AT)
    assert_empty @outlet.seen, "of the consumer that was given up"
    @name = @stream.instance_variable_get(:@consumer).name
    consumer(3)
    3.times { |index| bring("x", index + 2, index + 1, 2 - index, LATER_AT) }
    assert_equal [%w[x gap], %w[y gap], %w[x 2], %w[x 3], %w[x 4]], @outlet.seen
    assert_equal AT + 3, @stream.floor
  end

  # The connection breaks before any of it has come.
  def test_what_was_written_since_is_looked_for_until_it_is_read
    lose_two_of_three
    connect(2)
    ask_again
    @stream.forget_link
    connect(3)
    assert_equal ["2026-01-01T00:00:00.000004Z"], @peer.place
  end

  # After a restart by exec. Messages that come meanwhile are behind the gap.
  def test_an_id_that_the_stream_does_not_have_is_told_to_all
    begin_with("x" => AT + 50, "y" => 1)
    connect(2)
    assert_equal [2], @peer.place
    consumer(2)
    bring("x", 2, 1, 1)
    bring("x", 3, 2, 0)
    assert_equal [%w[x gap], %w[y gap], %w[x 3]], @outlet.seen
    assert_equal [AT + 2, true], [@stream.floor, @stream.live?]
  end

  def test_a_stream_that_never_had_a_message_does_not_have_it
    begin_with("x" => AT + 50)
    connect(0)
    consumer(0)
    assert_equal [%w[x gap]], @outlet.seen
  end

  # It was written by somebody who knew a higher id than its time.
  def test_an_id_above_the_time_of_its_message_is_there
    begin_with("x" => AT + 50)
    connect(2)
    consumer(1)
    bring("x", 2, 1, 0, AT, "Rondo-Of" => "#{AT + 49} t")
    assert_empty @outlet.seen
    assert_equal [0, AT + 50, true], [@stream.floor, @stream.top, @stream.live?]
  end

  # There may be more of them than anybody follows. Which ones have lost something is not known then.
  def test_channels_that_are_counted_have_a_limit
    many = Nats::Stream::COUNTED + 1
    connect(many + 2)
    consumer(many)
    many.times { |number| bring("other#{number}", number + 3, number + 1, many - number - 1) }
    assert_equal [%w[x gap], %w[y gap]], @outlet.seen
    assert_equal 0, @stream.instance_variable_get(:@counts).size
    assert_predicate @stream, :live?
  end

  def test_a_channel_that_is_full_explains_what_is_missing
    connect(9)
    consumer(2)
    bring("other", 8, 1, 1)
    bring("other", 9, 2, 0)
    assert_empty @outlet.seen
  end

  private

  def begin_with(channels)
    names = Nats::Names.new("rondo")
    @stream = Nats::Stream.new(names, Nats::Interests.new(names), @outlet, messages: 2, bytes: nil, replicas: 1, storage: "memory")
    @stream.keep(Rondo::PubSub::Queued::Terms.new(2, 0, nil))
    channels.each { |channel, after| @stream.follow(channel, after) }
  end

  # The stream that comes next does not have them.
  def lose_two_of_three
    connect(3)
    consumer(3)
    (1..3).each { |number| bring("x", number, number, 3 - number) }
    assert_equal [%w[x 2], %w[x 3]], @outlet.seen
    @outlet.seen.clear
    @stream.forget_link
  end

  def connect(last, created = CREATED)
    @peer = Peer.new
    @stream.begin(@peer, @peer)
    inform(last, created)
  end

  def inform(last, created = CREATED)
    @last = [last, created]
    @peer.answer("STREAM.INFO", "config" => CONFIG, "created" => created, "state" => { "last_seq" => last, "last_ts" => CREATED, "messages" => last })
  end

  def consumer(pending)
    @name = @stream.instance_variable_get(:@consumer).name
    @peer.answer("CONSUMER.CREATE", "num_pending" => pending)
  end

  # After its pause. The stream may be another one by then.
  def ask_again
    assert_nil @stream.instance_variable_get(:@consumer)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
    until @peer.asked.any? { |subject, _| subject.include?("CONSUMER.CREATE") }
      flunk "it is not read again" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, @stream.pause)
      @stream.ask
      inform(*@last) if @peer.asked.any? { |subject, _| subject.include?("STREAM.INFO") }
    end
  end

  def read_again
    ask_again
    @name = @stream.instance_variable_get(:@consumer).name
    yield
    @peer.answer("CONSUMER.CREATE", "num_pending" => 0)
  end

  def bring(channel, sequence, delivered, pending, begin_us = AT, headers = {})
    reply = "$JS.ACK.s.c.1.#{sequence}.#{delivered}.#{(begin_us + sequence) * 1000}.#{pending}"
    @stream.take(Nats::Message.new("rondo.s.#{channel}", @name, reply, headers, sequence.to_s))
  end
end
