# frozen_string_literal: true

# Presence of one process with a server that only has a mailbox: what a message that breaks something costs, and
# which blocks are called.
# SPDX-License-Identifier: MIT

require "test_helper"
require "minitest/mock"
require "stringio"
require "rondo"
require "rondo/pubsub/presence"

class PresenceNodeTest < Minitest::Test
  P = Rondo::Presence

  # A server with messages for presence.
  class Core
    attr_accessor :max_publish_bytes

    def initialize
      @messages = []
      @max_publish_bytes = 1 << 20
    end

    def put(*messages)
      messages.each { |message| @messages.push("channel", message) }
    end

    def mailbox_take(_key) = @messages.shift(@messages.size)
  end

  # A client for presence.
  Visitor = Struct.new(:closed) do
    private

    def note_joined = !closed
  end

  def setup
    @core = Core.new
    @node = P::Node.new(@core, P::Limits.default, "secret")
    @node.instance_variable_set(:@channel, "channel")
    @replica = @node.instance_variable_get(:@replica)
    Rondo::PubSub.log = Rondo::Logger.new(io: @log = StringIO.new)
  end

  def teardown
    Rondo::PubSub.log = nil
  end

  def test_a_message_that_raises_counts_and_the_others_of_its_batch_are_read
    read = P::Frames.method(:read)
    @core.put("1 b 0123456789abcdef 1 1\n[]", "breaks", "1 b 0123456789abcdee 1 1\n[]")
    P::Frames.stub(:read, ->(bytes) { bytes == "breaks" ? raise("broken") : read.call(bytes) }) { @node.send(:receive) }
    assert_match(/Presence: .*broken/, @log.string)
    assert_equal %w[0123456789abcdef 0123456789abcdee], @replica.peers.keys
    assert_equal 1, @replica.counts.invalid
  end

  def test_all_blocks_with_once_hear_of_a_join_that_is_owed
    calls = []
    listeners = [true, true, false].each_with_index.map do |once, index|
      P::Listener.new(:join, ->(id, info) { calls << [index, id, info] }, once)
    end
    assert @replica.once?("room", :leave, "ada", true)
    @core.put("1 b #{"0" * 16} 1 1\n[]")
    @node.send(:receive)
    P.stub(:listeners, listeners) { 2.times { @node.send(:tell, "room", :join, "ada", '"x"') } }
    assert_equal [0, 1, 2, 2].map { |index| [index, "ada", "x"] }, calls
  end

  # Not even until `grace` is over.
  def test_a_client_that_is_closed_is_nowhere
    @node.listen("room")
    refute @node.join(client(closed: true), "room", "ada", nil)
    assert_empty @replica.entries("room")
    refute_predicate @replica, :changes?
    assert_equal [[:follow, "room"]], @replica.out
  end

  def test_a_client_that_closes_has_its_rooms_until_it_is_told_to_have_ended
    visitor = client
    assert @node.join(visitor, "room", "ada", '"x"')
    visitor.closed = true
    refute @node.join(visitor, "room", "ada", '"y"')
    refute @node.join(visitor, "other", "ada", nil)
    assert_equal({ "ada" => '"x"' }, @replica.entries("room"))
    assert_nil @replica.rooms["other"]
    @node.leave_all(visitor)
    assert_empty @replica.rooms["room"].local
  end

  # Its end may be told at any time then.
  def test_what_a_limit_refuses_leaves_nothing
    visitor = client
    @replica.limits = @replica.limits.change(rooms: 1)
    assert @node.join(client, "room", "bob", nil)
    refute @node.join(visitor, "other", "ada", nil)
    @node.leave_all(visitor)
    assert_equal [%w[room], 1], [@replica.rooms.keys, @replica.counts.refused]
    assert_match(/a join was refused/, @log.string)
  end

  # Also one that ends the thread. Blocks of the same id that it has kept from their call, and other ids, come next.
  def test_what_a_block_raises_costs_no_other_call
    [NoMemoryError, SystemStackError, NotImplementedError, SystemExit, Interrupt].each do |error|
      calls = []
      told = ->(kind) { P::Listener.new(kind, ->(id, _) { calls << [kind, id] }, false) }
      raising = P::Listener.new(:join, ->(id, _) { raise error if id == "b" }, false)
      P.stub(:listeners, [raising, told.call(:join), told.call(:leave)]) { come_and_go(error.name, %w[a b c]) }
      assert_equal %i[join leave].product(%w[a b c]), calls, error
    end
    assert_equal 3, @log.string.scan("a block for join of").size
  end

  def test_a_thread_that_a_block_ends_costs_no_other_call
    calls = []
    listener = P::Listener.new(:join, ->(id, _) { id == "a" ? Thread.current.kill : calls << id }, false)
    P.stub(:listeners, [listener]) { come_and_go("room", %w[a b]) }
    assert_equal %w[b], calls
  end

  def test_only_a_max_publish_bytes_that_is_too_small_has_a_line_in_the_log
    [20_480, 20_479].each do |bytes|
      @core.max_publish_bytes = bytes
      @node.send(:warn_of_size)
    end
    assert_equal 1, @log.string.lines.size
    assert_match(/max_publish_bytes is 20479, less than 20480/, @log.string)
  end

  private

  # Tasks of a server, as far as this needs them.
  def come_and_go(room, ids)
    @replica.limits = @replica.limits.change(grace: 0)
    @node.listen(room)
    ids.each { |id| @replica.join(room, id, nil, 0) }
    run_tasks
    ids.each { |id| @replica.leave(room, id, 0) }
    run_tasks
  end

  def run_tasks
    more = true
    while more
      more = false
      Rondo.stub(:run, ->(&task) { more = Thread.new { quietly(&task) }.join }) { @node.send(:call_blocks) }
    end
  end

  def quietly
    yield
  rescue SystemExit, Interrupt
    nil # of a block
  end

  def client(closed: false)
    Visitor.new(closed)
  end
end
