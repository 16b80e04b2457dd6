# frozen_string_literal: true

# Copies of channels in JetStream when their consumers are gone, or nobody answers.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/nats"
require "rondo/pubsub/nats/stream"

class CopiesTest < Minitest::Test
  Nats = Rondo::PubSub::Nats
  INFO = { "state" => { "first_seq" => 1, "messages" => 1 } }.freeze

  CREATED = "2001-02-03T04:05:06.000007Z"
  CREATED_US = 981_173_106_000_007

  # A stream, its requests and what they get.
  class Peer
    attr_reader :asked, :pages, :given, :said, :others
    attr_accessor :takes, :age_us, :leader
    attr_writer :floor

    def initialize
      @asked, @pages, @open, @given, @said, @others = Array.new(6) { [] }
      @track = Nats::Track.new(9)
      @takes = true
      @age_us = 0
    end

    def track(channel) = (@track if channel == "x" || @others.include?(channel))
    def ask(subject, _data = "", &block) = @asked << [subject, block]
    def send_to(_subject, data, name) = @pages << [name, JSON.parse(data)]
    def shut(name) = @open.delete(name)
    def info(&block) = @asked << ["INFO", block]
    def refused(text) = @said << text
    def give(*words) = (@given << words) && @takes
    def live? = true
    def replicas? = !leader.nil?
    def began = 1
    def floor = @floor.to_i
    def top = 9
    def messages = 100

    def open(name = nil)
      name ? @open << name : @open
    end

    # Answers what was asked last.
    def answer(words)
      @asked.pop.last.call(words)
    end
  end

  def setup
    @now = 0.0
    @peer = Peer.new
    @copies = Nats::Copies.new(Nats::Names.new("rondo"), @peer, clock: -> { @now })
    @copies.want("x")
    begin_copy
  end

  # The clock of this machine may be anywhere.
  def test_what_time_it_is_says_nats
    @peer.age_us = 60_000_000
    finish
    now = @peer.given.last[2]
    assert_equal CREATED_US, now
    assert_equal now - 60_000_000, @peer.given.last[1]
    @copies.want("x")
    begin_copy
    @now += 7
    finish
    assert_equal CREATED_US + 7_000_000, @peer.given.last[2], "the time that it takes"
  end

  def test_a_copy_says_what_the_stream_has_lost
    @peer.floor = 5
    finish
    assert_equal 5, @peer.given.last[1]
  end

  # A replica has them a moment later, whoever has them now.
  def test_a_copy_has_the_newest_message_that_the_leader_has
    begin_at_replica(oldest: 1, newest: 3, pending: 2)
    deliver(1, 1)
    deliver(2, 0)
    assert_equal [[], []], [@peer.asked, @peer.given]
    deliver(3, 0)
    @peer.answer(INFO)
    assert_equal [1, [1, 2, 3]], given
  end

  def test_a_replica_that_has_none_of_them_yet
    begin_at_replica(oldest: 1, newest: 1, pending: 0)
    assert_equal 256, @peer.pages.last.last["batch"]
    finish
    assert_equal [1, [1]], given
  end

  def test_a_channel_of_which_the_leader_has_nothing
    begin_at_replica(oldest: nil, newest: nil, pending: 0)
    @peer.answer(INFO)
    assert_equal [1, []], given
  end

  # It had lost them when it was killed, the leader has them.
  def test_a_copy_says_what_a_replica_lacks
    begin_at_replica(oldest: 2, newest: 6, pending: 2)
    deliver(5, 1)
    deliver(6, 0)
    @peer.answer(INFO)
    assert_equal [4, [5, 6]], given
  end

  def test_a_replica_that_lacks_the_newest_for_too_long_is_given_up
    begin_at_replica(oldest: 1, newest: 3, pending: 2)
    deliver(2, 0)
    @now += 5
    @copies.ask(@peer)
    assert_equal [], @peer.open
    assert_empty @peer.given
  end

  # Every wait is longer than the one before, but for chance, up to a limit.
  def test_a_consumer_that_is_gone_is_made_again_after_a_pause
    pauses = ["503 No Responders", "409 Consumer Deleted", "404 No Messages", *["503"] * 20].map do |status|
      control(status)
      assert_equal [], @peer.open
      @copies.ask(@peer)
      assert_equal [], @peer.open, "not at once"
      pause = @copies.pause
      @now += pause
      begin_copy
      pause
    end
    assert_operator pauses.first, :<=, 0.1
    pauses.each_with_index { |pause, index| assert_includes (0.05 * [2**index, 50].min)..(0.1 * [2**index, 50].min), pause }
  end

  def test_after_a_copy_that_came_the_pause_is_short_again
    8.times { control("503") and @now += @copies.pause and begin_copy }
    finish
    assert_equal 1, @peer.given.size
    @copies.want("x")
    begin_copy
    control("503")
    assert_operator @copies.pause, :<=, 0.1
  end

  def test_a_copy_that_the_hub_does_not_take_is_read_again_after_a_pause
    @peer.takes = false
    finish
    @copies.ask(@peer)
    assert_equal [], @peer.open
    assert_operator @copies.pause, :>, 0
  end

  def test_a_page_that_ends_goes_on
    deliver(1, 5)
    @now += 2
    control("408 Request Timeout")
    assert_equal [256, 256], @peer.pages.map { |_, words| words["batch"] }
    deliver(2, 4)
    control("409 Message Size Exceeds MaxBytes")
    assert_equal [256, 4 << 20], @peer.pages.last.last.values_at("batch", "max_bytes")
    control("409 Message Size Exceeds MaxBytes")
    assert_equal [1, nil], @peer.pages.last.last.values_at("batch", "max_bytes"), "one that is longer than a page"
    deliver(3, 3)
    assert_equal 256, @peer.pages.last.last["batch"]
    assert_equal ["c1"], @peer.open
  end

  # A status that comes at once again and again.
  def test_a_page_that_expires_too_soon_is_none
    control("408 Request Timeout")
    assert_equal [[], 1], [@peer.open, @peer.pages.size]
  end

  def test_silence_ends_a_copy
    assert_equal 5, @copies.pause
    @now += 3
    deliver(1, 5)
    assert_equal 5, @copies.pause
    @now += 5
    @copies.ask(@peer)
    assert_equal [], @peer.open
  end

  def test_who_leaves_a_channel_leaves_nothing_open
    @copies.forget("x")
    assert_equal [], @peer.open
    assert_nil @copies.pause
    deliver(1, 0)
    assert_empty @peer.given
  end

  def test_a_consumer_that_cannot_be_made
    control("503")
    @now += @copies.pause
    @copies.ask(@peer)
    @peer.answer("error" => { "code" => 400, "description" => "maximum consumers limit reached" })
    assert_equal ["JetStream: maximum consumers limit reached"], @peer.said
    assert_equal [], @peer.open
    @now += @copies.pause
    @copies.ask(@peer)
    assert_raises(Nats::Link::Refused) { @peer.answer("error" => { "code" => 503, "none" => true }) }
  end

  # The copy ends with the newest messages, and says from where on it is whole.
  def test_what_comes_while_a_copy_is_read_has_a_limit
    deliver(3, 1)
    (4..9).each { |id| come(id, 6 << 20) }
    finish
    _, floor, *, items = @peer.given.last
    assert_equal [7, [8, 9]], [floor, items.map(&:id)]
  end

  def test_one_message_is_taken_however_long_it_is
    [8, 9].each { |id| come(id, 20 << 20) }
    finish
    assert_equal [8, [9]], @peer.given.last.values_at(1, -1).then { |floor, items| [floor, items.map(&:id)] }
  end

  def test_all_that_comes_meanwhile_has_a_limit_together
    begin_others(%w[a b c d e])
    %w[a b c d e].each { |channel| come(1, 15 << 20, channel) }
    assert_equal %w[c1 c2 c3 c4 c5], @peer.open, "the fifth one waits"
    assert_equal 0, @peer.given.size
    @now += @copies.pause
    @copies.ask(@peer)
    assert_equal "c7", @peer.open.last
  end

  # The oldest one must end, or none would.
  def test_the_oldest_copy_goes_on
    begin_others(%w[a b c d])
    %w[a b c d x].each { |channel| come(1, 16 << 20, channel) }
    finish("c1")
    assert_equal %w[x], @peer.given.map(&:first)
  end

  private

  def begin_at_replica(oldest:, newest:, pending:)
    @peer.open.clear
    @peer.asked.clear
    @copies.forget("x")
    @peer.leader = Nats::Leader.new(@peer, Nats::Names.new("rondo"))
    @copies.want("x")
    @copies.ask(@peer)
    ends = newest ? [newest, oldest].map { |number| { "message" => { "seq" => number } } } : [{ "error" => { "err_code" => 10_037 } }]
    ends.each { |answer| @peer.answer(answer) }
    @peer.answer("name" => "one", "num_pending" => pending, "created" => CREATED)
  end

  # @return [Array] floor, ids
  def given
    _, floor, *, items = @peer.given.last
    [floor, items.map(&:id)]
  end

  def begin_others(channels)
    channels.each do |channel|
      @peer.others << channel
      @copies.want(channel)
      begin_copy
    end
  end

  def come(id, bytes, channel = "x")
    @copies.came(Rondo::PubSub::Queued::Item.new(channel, 0, 0, id, "t", "text"), bytes)
  end

  def begin_copy
    @copies.ask(@peer)
    @peer.answer("name" => "one", "num_pending" => 3, "created" => CREATED)
  end

  def control(status)
    @copies.take(Nats::Message.new("", @peer.open.last, nil, { "" => status }, ""))
    true
  end

  def deliver(number, pending, name = @peer.open.last)
    @copies.take(Nats::Message.new("rondo.s.x", name, "$JS.ACK.s.c.1.#{number}.#{number}.#{number * 1000}.#{pending}", {}, "text"))
  end

  def finish(name = @peer.open.last)
    deliver(1, 0, name)
    @peer.answer(INFO)
  end
end
