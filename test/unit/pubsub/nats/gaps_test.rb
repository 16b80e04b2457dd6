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
    def push(_bytes) = nil

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
    attr_reader :seen, :said
    attr_accessor :full

    def initialize
      @seen = []
      @said = []
      @full = []
    end

    def refused(text) = @said << text
    def begins_at(id) = @said << id

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

  # Its sign of life says how far the stream was sent: what is before the last message is gone.
  def test_all_has_come_though_the_last_message_was_removed
    connect(3)
    consumer(2)
    bring("x", 1, 1, 1)
    refute_predicate @stream, :live?
    beat(1, 3)
    assert_predicate @stream, :live?
    assert_empty @outlet.seen
  end

  # It comes in the middle of many messages: who has lost something is not known then.
  def test_a_question_for_an_answer_says_nothing_of_what_has_come
    connect(1)
    consumer(1)
    bring("x", 1, 1, 0)
    assert_predicate @stream, :live?
    bring("other", 8, 2, 1)
    @stream.take(Nats::Message.new("", @name, "reply", { "" => "100 FlowControl Request" }, ""))
    refute_predicate @stream, :live?
    bring("other", 9, 3, 0)
    assert_empty @outlet.seen
    assert_predicate @stream, :live?
  end

  # It was read before, and is not written again. A replica that has less begins with it.
  def test_messages_before_the_time_from_which_it_is_read_are_passed_over
    lose_two_of_three
    connect(1)
    ask_again
    consumer(1)
    bring("x", 1, 1, 0, AT, "Rondo-Of" => "0 t #{@lineage.name} 1")
    assert_equal [%w[x gap], %w[y gap]], @outlet.seen
    assert_predicate @stream, :live?
    bring("y", 2, 2, 0, LATER_AT)
    assert_equal %w[y 2], @outlet.seen.last
  end

  # So that it goes on there after a restart.
  def test_the_hub_is_told_where_the_first_channels_begin
    assert_equal [AT], @outlet.said
    begin_with({})
    connect(3, CREATED, AT + 3)
    end_at(3)
    %w[x y].each { |channel| @stream.follow(channel, 1) }
    assert_equal [AT, AT + 3], @outlet.said
  end

  def test_the_hub_is_not_told_what_it_has_said_itself
    @outlet.said.clear
    rewind_to(AT + 1)
    read_old_messages
    @stream.follow("y", 1)
    assert_empty @outlet.said
  end

  # ---- a consumer at a replica ----

  # It has the last message a moment later than the leader.
  def test_not_all_has_come_while_a_replica_lacks_the_last_message
    with_replicas
    connect(3)
    consumer(1)
    bring("x", 1, 1, 1)
    bring("x", 2, 2, 0)
    beat(2, 2)
    refute_predicate @stream, :live?
    bring("x", 3, 3, 0)
    assert_equal [%w[x 2], %w[x 3]], @outlet.seen
    assert_predicate @stream, :live?
  end

  def test_a_replica_that_does_not_get_the_last_message_is_given_up
    with_replicas
    connect(3)
    consumer(1)
    bring("x", 1, 1, 0)
    beat(1, 1)
    behind_at = @stream.instance_variable_get(:@behind_at)
    @stream.instance_variable_set(:@behind_at, behind_at - Nats::Stream::LAG - 1)
    beat(1, 1)
    assert_equal 1, @outlet.said.grep(String).size
    inform(3)
    refute_equal @name, @stream.instance_variable_get(:@consumer).name
  end

  def test_an_id_that_a_replica_does_not_have_yet_is_not_taken_for_lost
    with_replicas
    begin_with("x" => AT + 50)
    connect(2)
    consumer(0)
    beat(0, 1)
    assert_empty @outlet.seen
    bring("x", 2, 1, 0, AT, "Rondo-Of" => "#{AT + 49} t")
    assert_empty @outlet.seen
    assert_equal [0, AT + 50, true], [@stream.floor, @stream.top, @stream.live?]
  end

  # ---- after a restart by exec ----

  def test_what_clients_have_not_seen_is_read_though_a_replica_has_it_a_moment_later
    with_replicas
    rewind_to(AT + 1)
    consumer(2)
    bring("x", 1, 1, 1)
    bring("x", 2, 2, 0)
    beat(2, 2)
    assert_equal ["2026-01-01T00:00:00.000001Z"], @peer.place, "it goes on"
    bring("x", 3, 3, 0)
    end_at(3)
    assert_equal [%w[x 2], %w[x 3]], @outlet.seen
  end

  def test_what_the_hub_does_not_take_of_it_is_read_again
    rewind_to(AT + 1)
    @outlet.full = [%w[x 2]]
    consumer(3)
    (1..3).each { |number| bring("x", number, number, 3 - number) }
    assert_empty @outlet.seen
    @outlet.full = []
    ask_again
    read_old_messages
  end

  def test_it_is_read_again_when_the_connection_is_lost
    rewind_to(AT + 1)
    consumer(3)
    bring("x", 1, 1, 2)
    bring("x", 2, 2, 1)
    @stream.forget_link
    connect(3, CREATED, AT + 3)
    read_old_messages
  end

  def test_it_is_read_again_when_the_consumer_is_gone
    rewind_to(AT + 1)
    consumer(3)
    bring("x", 1, 1, 2)
    @stream.take(Nats::Message.new("", @name, nil, { "" => "409 Consumer Deleted" }, ""))
    inform(3, CREATED, AT + 3)
    read_old_messages
  end

  # Of a channel with two messages more may be gone.
  def test_what_a_limit_has_removed_meanwhile_is_told
    rewind_to(AT + 1, "y" => AT + 1)
    consumer(2)
    bring("x", 2, 1, 1)
    bring("x", 3, 2, 0)
    end_at(3)
    assert_equal [%w[x gap], %w[x 2], %w[x 3]], @outlet.seen
  end

  def test_what_something_else_has_removed_meanwhile_is_told_to_all
    rewind_to(AT + 1, "y" => AT + 1)
    consumer(1)
    bring("x", 3, 1, 0)
    end_at(3)
    assert_equal [%w[x gap], %w[y gap], %w[x 3]], @outlet.seen
  end

  # Looking for a time there ends the process of a NATS in which messages were removed.
  def test_a_stream_in_memory_is_read_from_its_beginning
    @storage = "memory"
    begin_with("x" => AT + 2)
    connect(3, CREATED, AT + 3)
    assert_empty @peer.place
    consumer(3)
    (1..3).each { |number| bring("x", number, number, 3 - number) }
    end_at(3)
    assert_equal [%w[x 3]], @outlet.seen
  end

  private

  def with_replicas
    @replicas = 3
    setup
  end

  # Clients have seen the first of three.
  def rewind_to(id, others = {})
    begin_with("x" => id, **others)
    connect(3, CREATED, AT + 3)
    assert_equal ["2026-01-01T00:00:00.000001Z"], @peer.place
  end

  def read_old_messages
    assert_equal ["2026-01-01T00:00:00.000001Z"], @peer.place
    consumer(3)
    (1..3).each { |number| bring("x", number, number, 3 - number) }
    end_at(3)
    assert_equal [%w[x 2], %w[x 3]], @outlet.seen
  end

  # The one that follows it.
  def end_at(number)
    assert_equal [number], @peer.place
    consumer(1)
    bring("x", number, 1, 0)
    assert_predicate @stream, :live?
  end

  def beat(delivered, last)
    words = { "" => "100 Idle Heartbeat", "Nats-Last-Consumer" => delivered.to_s, "Nats-Last-Stream" => last.to_s }
    @stream.take(Nats::Message.new("", @name, nil, words, ""))
  end

  def begin_with(channels)
    names = Nats::Names.new("rondo")
    @stream = Nats::Stream.new(names, Nats::Interests.new(names), @outlet, lineage: @lineage = Rondo::PubSub::Queued::Lineage.new, messages: 2, bytes: nil, replicas: @replicas || 1, storage: "memory")
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

  def connect(...)
    @peer = Peer.new
    @stream.begin(@peer, @peer)
    inform(...)
  end

  def inform(last, created = CREATED, last_us = AT)
    @last = [last, created, last_us]
    config = CONFIG.merge("num_replicas" => @replicas || 1, "storage" => @storage || "file")
    time = Time.at(0, last_us, :usec).utc.iso8601(6)
    @peer.answer("STREAM.INFO", "config" => config, "created" => created, "state" => { "last_seq" => last, "last_ts" => time, "messages" => last })
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
