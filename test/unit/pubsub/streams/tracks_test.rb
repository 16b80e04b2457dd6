# frozen_string_literal: true

# Tracks and publisher of Redis Streams: single cases, each on one server, without Redis. Random ones are in
# histories_test.rb.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/streams_model"

class StreamsTracksTest < Minitest::Test
  DAY = 86_400_000_000 # microseconds

  def setup
    @redis = StreamsModel::Redis.new
    @other = StreamsModel::Server.new(@redis)
    @server = StreamsModel::Server.new(@redis)
  end

  def test_a_message_that_is_lost_is_read
    follow("x")
    publish("x", "1", "2")
    assert_equal 1, lose("1")
    calm
    assert_equal %w[1 2], texts("x")
  end

  def test_messages_of_an_outage_come_in_the_order_of_ids_over_all_channels
    follow("x", "y")
    @server.disconnect
    %w[x1 y1 x2 y2].each { |text| publish(text[0], text) }
    calm
    assert_equal %w[x1 y1 x2 y2], @server.order.map(&:text)
  end

  def test_a_gap_is_told_once_for_what_was_trimmed
    follow("x")
    @server.disconnect
    publish("x", "1", "2", "3")
    @redis.streams["x"].shift(2)
    calm
    assert_equal [nil, "3"], texts("x")
  end

  # A time at which somebody began to follow is not a message.
  def test_the_first_message_of_a_channel_is_no_gap_for_who_followed_earlier
    follow("x")
    publish("z", "of another channel")
    @other.follow("x")
    calm
    publish("x", "1")
    calm
    assert_equal ["1"], texts("x")
  end

  def test_a_gap_that_the_hub_does_not_take_is_told_afterwards
    follow("x")
    @server.disconnect
    publish("x", "1", "2")
    @redis.streams["x"].shift
    @server.is_stuck = true
    20.times { turn(@server) }
    assert_empty texts("x")
    @server.is_stuck = false
    calm
    assert_equal [nil, "2"], texts("x")
  end

  # To read again would find the same.
  def test_what_does_not_follow_and_is_nowhere_is_a_gap
    follow("x")
    3.times { |number| publish("x", number.to_s) }
    lose("0", "1")
    @redis.flush
    calm
    assert_equal [nil, "2"], texts("x").first(2)
    assert_equal 1, reads
  end

  # Who breaks off has a higher id of another channel, and nobody would tell it.
  def test_a_redis_that_lost_all_is_told_to_all_channels_before_anything_else
    follow("x", "y", "z")
    @server.disconnect
    @redis.now += 1000
    @redis.flush
    publish("y", "1")
    calm
    assert_equal [%w[x y z], ["y"]], [@server.order.first(3).map(&:channel).sort, @server.order.drop(3).map(&:channel)]
    assert_equal [nil, nil, nil, "1"], @server.order.map(&:text)
  end

  # So that it goes on there after a restart. Once: later, what other channels are owed may be before it.
  def test_the_hub_is_told_where_the_first_channels_begin
    publish("x", "before")
    clock = @redis.clock
    follow("x", "y")
    calm
    assert_equal [clock], @server.begins
    publish("x", "1")
    follow("z")
    calm
    assert_equal [clock], @server.begins
  end

  def test_the_hub_is_not_told_what_it_has_said_itself
    publish("x", "before")
    @server.follow("x", @redis.clock - 1)
    follow("y")
    calm
    assert_equal ["before"], texts("x")
    assert_empty @server.begins
  end

  # Whenever a message is published: what is before the begin that is told has been delivered then.
  def test_the_hub_is_told_no_begin_behind_what_is_owed
    told = 0
    30.times do |steps|
      setup
      begin_at, delivered = nil
      @server.define_singleton_method(:begins_at) { |id| begin_at, delivered = id, order.map(&:id) }
      follow("x", "y")
      @server.feed
      (0...steps).each { |step| @server.step(%i[execute take listen hear][step % 4]) }
      publish("x", "1")
      calm
      owed = @server.order.map(&:id).select { |id| begin_at && id <= begin_at }
      assert_equal owed, delivered.to_a & owed, "after #{steps} steps"
      told += 1 if begin_at
    end
    assert_operator told, :>, 10
  end

  # What it had given before it was read is all here, but who comes back later misses it.
  def test_a_redis_that_lost_all_while_it_is_connected_is_told
    follow("x")
    publish("x", "1")
    calm
    @redis.now += 1000
    @redis.flush
    publish("x", "2")
    calm
    assert_equal ["1", nil, "2"], texts("x")
  end

  def test_a_channel_that_was_not_read_is_read_before_a_gap_is_told
    follow("x", "y")
    publish("y", "y1", "y2")
    publish("x", "x1", "x2")
    lose("y1", "x1")
    calm
    assert_equal %w[y1 y2 x1 x2], @server.order.map(&:text)
  end

  # Redis answered before x2 was there, and x2 was lost between the nodes of a cluster.
  def test_a_message_that_is_lost_behind_an_answer_is_read
    follow("x", "y")
    @server.disconnect
    publish("x", "x1")
    @server.feed
    5.times { @server.step(:listen) }
    until @server.asked.any? { |words| words.last == "next" }
      %i[hear execute take].each { |which| @server.step(which) }
      @server.feed
    end
    publish("x", "x2", "x3")
    publish("y", "y1")
    assert_equal 1, lose("x2")
    calm
    assert_equal %w[x1 x2 x3 y1], @server.order.map(&:text)
  end

  # Anybody who may write to Redis may publish that.
  def test_a_message_that_names_one_of_nobody_is_a_gap
    follow("x")
    publish("x", "x1")
    @server.disconnect
    calm
    id = 1 << 40
    @server.listener.push("message", "x", "\0rondo 1 #{id} #{id + 1} t\nx2")
    calm
    assert_equal ["x1", nil, "x2"], texts("x")
    assert_equal 3, reads
  end

  # Both messages of x came live while it was read, and then were trimmed.
  def test_what_is_missing_before_a_message_that_is_held_is_told_in_its_turn
    follow("x", "y")
    @server.disconnect
    publish("x", "x1")
    @server.feed
    5.times { @server.step(:listen) }
    publish("y", "y1")
    publish("x", "x2", "x3")
    @redis.erase("x") { |row, _| row.text != "x3" }
    calm
    assert_equal [nil, "y1", "x2", "x3"], @server.order.map(&:text)
    assert_equal @redis.ever["x"].first.id, @server.order.first.id
  end

  # It would come with the next one of its channel, after higher ids of others.
  def test_what_is_published_before_the_subscription_is_there_is_in_the_copy_alone
    follow("y")
    @server.follow("x")
    @server.copy("x")
    @server.feed
    publish("x", "early")
    publish("y", "other")
    calm
    publish("x", "late")
    calm
    assert_equal [["early"]], @server.copies.map { |_, _, items| items.map(&:text) }
    assert_equal %w[other late], @server.order.map(&:text)
  end

  def test_a_message_between_the_subscription_and_the_clock_comes_in_its_turn
    follow("y")
    @server.follow("x")
    @server.feed
    3.times { @server.step(:listen) } # Redis has the subscription
    publish("x", "first")
    publish("y", "second")
    calm
    assert_equal %w[first second], @server.order.map(&:text)
  end

  def test_what_comes_of_an_earlier_subscription_leaves_no_hole
    follow("x")
    publish("x", "1")
    @server.unfollow("x")
    @server.feed
    2.times { @server.step(:listen) }
    publish("x", "2")
    @server.follow("x")
    calm
    publish("x", "3")
    calm
    assert_equal %w[1 2 3], @server.order.map(&:text)
  end

  # All of them have been delivered, but the copy cannot have them.
  def test_the_newest_messages_are_deleted_before_a_copy
    follow("x")
    publish("x", "1", "2", "3")
    calm
    @redis.erase("x") { |row, _| row.text != "1" }
    @server.copy("x")
    calm
    last = @redis.ever["x"].last.id
    assert_equal [["x", last, [], last]], @server.copies
  end

  def test_the_newest_messages_are_deleted_during_an_outage
    follow("x", "y")
    @server.disconnect
    publish("x", "1", "2")
    publish("y", "3")
    @redis.erase("x") { |row, _| row.text == "2" }
    calm
    assert_equal ["1", nil, "3"], @server.order.map(&:text)
  end

  # Redis knows nothing of the channel any more.
  def test_all_messages_of_a_channel_expire_during_an_outage
    @other.terms = Rondo::PubSub::Queued::Terms.new(1000, 60_000)
    follow("x", "y")
    publish("x", "x1")
    calm
    @server.disconnect
    publish("x", "x2")
    @redis.now += 2 * DAY
    publish("y", "y1")
    calm
    assert_equal [["x", "x1"], ["x", nil], ["y", "y1"]], (@server.order.map { |item| [item.channel, item.text] })
  end

  # Redis knows nothing of x, and nobody published there.
  def test_a_channel_without_messages_has_no_gap_after_a_short_outage
    follow("x", "y")
    publish("y", "y1")
    @redis.now += 2 * DAY
    publish("y", "y2")
    calm
    @server.disconnect
    publish("y", "y3")
    calm
    assert_equal [[], %w[y1 y2 y3]], [texts("x"), texts("y")]
  end

  def test_a_redis_to_which_nobody_published_has_no_gap_after_a_long_outage
    follow("x", "y")
    publish("y", "y1")
    calm
    @server.disconnect
    @redis.now += 2 * DAY
    calm
    assert_equal [[], ["y1"]], [texts("x"), texts("y")]
  end

  # The next engine of a server is told up to where the last one came.
  def test_a_channel_without_messages_has_no_gap_after_a_restart
    @redis.now += 2 * DAY
    publish("y", "y1")
    @server.follow("x", @redis.clock)
    publish("y", "y2")
    calm
    assert_empty texts("x")
  end

  # What is read says it: to read again would cost as much as the outage.
  def test_holes_of_a_stream_are_known_by_one_read
    follow("x")
    @server.disconnect
    publish("x", "1", "2", "3", "4")
    @redis.erase("x") { |row, _| %w[1 3].include?(row.text) }
    calm
    assert_equal [nil, "2", nil, "4"], texts("x")
    assert_equal 1, reads
  end

  # PING brings it: nothing else is held.
  def test_a_message_that_is_on_its_way_costs_a_copy_no_other_read
    follow("x")
    publish("x", "1")
    @server.copy("x")
    3.times { %i[feed execute take].each { |which| which == :feed ? @server.feed : @server.step(which) } }
    calm
    assert_equal [["1"]], @server.copies.map { |_, _, items| items.map(&:text) }
    assert_equal %w[newest], @server.asked.map(&:last) & %w[newest next]
  end

  # So that Redis serves others between them. The last page has what is trimmed meanwhile no more.
  def test_a_copy_is_read_page_by_page
    follow("x")
    publish("x", *("1".."12"))
    calm
    @server.copy("x")
    calm
    assert_equal [[*"1".."12"]], @server.copies.map { |_, _, items| items.map(&:text) }
    assert_equal 3, @server.asked.count { |words| words.last == "newest" }
    @server.copy("x")
    @server.feed
    %i[execute take].each { |which| @server.step(which) }
    @redis.erase("x") { |row, _| row.text.to_i <= 4 }
    calm
    assert_equal [*"5".."12"], @server.copies.last[2].map(&:text)
    assert_equal @redis.ever["x"][3].id, @server.copies.last[1]
  end

  # And at least one message of each page.
  def test_a_copy_has_so_many_bytes
    follow("x")
    publish("x", *("1".."12").map { |number| number.rjust(10) })
    calm
    @server.tracks.instance_variable_set(:@copy_max, 80)
    @server.copy("x")
    calm
    assert_equal [*"5".."12"], @server.copies.last[2].map { |item| item.text.strip }
    assert_equal @redis.ever["x"][3].id, @server.copies.last[1]
  end

  # Another server publishes again what this one has already, and is forgotten meanwhile.
  def test_what_was_held_comes_once_though_nobody_follows_it
    follow("x")
    @server.is_stuck = true
    publish("x", "1")
    lose("1")
    publish("x", "2")
    20.times { turn(@server) }
    @server.unfollow("x")
    @server.is_stuck = false
    follow("y")
    assert_equal %w[1 2], @server.order.map(&:text)
  end

  # A hub that was full when the last channel went.
  def test_an_engine_without_channels_rests
    follow("x")
    @server.is_stuck = true
    publish("x", "1")
    turn(@server)
    @server.unfollow("x")
    @server.disconnect
    assert_nil @server.tracks.pause
  end

  def test_a_copy_that_is_asked_for_twice
    follow("x")
    publish("x", "1")
    calm
    @server.copy("x")
    @server.feed
    @server.copy("x")
    calm
    assert_equal 2, @server.copies.size
  end

  def test_bytes_above_the_limit_are_read_again
    follow("x")
    text = "a" * ((StreamsModel::Streams::Tracks::HELD_MAX / 2) + 1)
    publish("x", "1", text, "#{text}b", "4")
    lose("1")
    calm
    assert_equal [1, text.size, text.size + 1, 1], texts("x").map(&:size)
  end

  # The newest ones are given, and each channel that has lost something says so, in the order of ids.
  def test_what_was_missed_has_a_limit_over_all_channels
    follow("x", "y", "z")
    @server.tracks.instance_variable_get(:@filled).instance_variable_set(:@most, 6 * (StreamsModel::Streams::Item::OWN + 2))
    @server.disconnect
    publish("z", "z1")
    8.times { |number| %w[x y].each { |channel| publish(channel, "#{channel}#{number}") } }
    calm
    given = @server.order.map { |item| [item.channel, item.text] }
    %w[x y z].each { |channel| assert_equal [1, nil], [texts(channel).count(nil), texts(channel).first], channel }
    assert_equal [%w[x x7], %w[y y7]], given.last(2)
    assert_operator given.size, :<, 12
    assert_equal @server.order.map(&:id).sort, @server.order.map(&:id)
    publish("x", "next")
    calm
    assert_equal [%w[x next]], @server.order.drop(given.size).map { |item| [item.channel, item.text] }
  end

  # Short ones are many.
  def test_messages_that_are_held_count_with_what_they_take
    tracks = @server.tracks
    tracks.instance_variable_set(:@held_bytes, StreamsModel::Streams::Tracks::HELD_MAX - 100)
    tracks.send(:hold, StreamsModel::Streams::Item.new("x", 0, 0, 1, "t", ""))
    assert_equal [[], 0], %i[@held @held_bytes].map { |name| tracks.instance_variable_get(name) }
  end

  # A copy that is read while many come.
  def test_what_comes_during_a_copy_has_a_limit
    follow("x")
    publish("x", "1")
    @server.tracks.instance_variable_set(:@copy_max, 3 * (StreamsModel::Streams::Item::OWN + 1))
    @server.copy("x")
    @server.feed
    @server.step(:execute)
    publish("x", *("2".."9"))
    20.times { @server.step(:hear) }
    calm
    assert_equal [%w[7 8 9]], @server.copies.map { |_, _, items| items.map(&:text) }
    assert_equal @redis.ever["x"][5].id, @server.copies.last[1]
    assert_equal [*"1".."9"], texts("x")
  end

  # Redis refuses the first message ever, and has room again when the second one arrives.
  def test_a_message_does_not_overtake_a_refused_one
    %w[1 2].each { |text| @server.publish("x", text) }
    @server.feed
    @redis.is_full = true
    @server.commands.execute
    @redis.is_full = false
    @server.commands.execute
    calm
    assert_equal %w[1 2], written("x")
  end

  # Each one is sent once there: none is early.
  def test_a_new_connection_goes_on_behind_what_was_answered
    calm
    %w[1 2].each { |text| @server.publish("x", text) }
    @server.feed
    @server.disconnect
    calm
    assert_equal %w[1 2], written("x")
    assert_equal 2, @server.asked.count { |words| words[1] == StreamsModel::Scripts::SHA[StreamsModel::Scripts::PUBLISH] }
  end

  # Redis refuses one for now, and another one behind it for good. It has room again when the second one arrives.
  def test_a_message_does_not_overtake_one_that_came_back
    calm
    @redis.bad["y"] = "NOPERM"
    %w[x1 x2 y3].each { |text| @server.publish(text[0], text) }
    @server.feed
    @redis.is_full = true
    %i[execute take].each { |which| 3.times { @server.step(which) } }
    @server.feed
    @server.step(:execute)
    @redis.is_full = false
    @server.step(:execute)
    assert_equal 2, @server.commands.pending
    calm
    assert_equal [%w[x1 x2], []], [written("x"), written("y")]
  end

  # A replica that was behind has become the master.
  def test_a_redis_that_went_back_takes_messages
    publish_here("1")
    before = @redis.snapshot
    publish_here("2")
    @redis.restore(before)
    publish_here("3")
    assert_equal %w[1 2 3], written("x")
  end

  # Another server publishes there before this one connects, and the stream has room for no other message.
  def test_a_redis_that_went_back_and_has_nothing_older_is_told
    follow("x", "z")
    publish("x", "x1")
    before = @redis.snapshot
    publish("z", "z1")
    publish("x", "x2")
    calm
    @server.disconnect
    @redis.restore(before)
    @other = StreamsModel::Server.new(@redis)
    publish("x", "x3")
    @redis.erase("x") { |row, _| row.text != "x3" }
    calm
    assert_equal [["x1", "x2", nil], ["z1", nil]], [texts("x"), texts("z")]
  end

  # Of the messages that are deleted, the last one is named by the next one.
  def test_a_redis_that_has_nothing_older_and_lost_nothing_is_the_same
    follow("x", "z")
    publish("x", "x1", "x2")
    calm
    @server.disconnect
    publish("x", "x3", "x4")
    @redis.erase("x") { |row, _| row.text != "x4" }
    calm
    assert_equal [["x1", "x2", nil, "x4"], []], [texts("x"), texts("z")]
  end

  def test_what_redis_reads_late_from_a_closed_connection_is_written_once
    %w[1 2 3].each { |text| @server.publish("x", text) }
    @server.feed
    old = @server.disconnect
    @server.feed
    2.times do
      old.execute
      @server.commands.execute
    end
    calm
    3.times { old.execute }
    assert_equal %w[1 2 3], written("x")
  end

  private

  def follow(*channels)
    channels.each { |channel| @server.follow(channel) }
    calm
  end

  # By another server.
  def publish(channel, *texts)
    texts.each { |text| @other.publish(channel, text) }
    12.times { turn(@other) }
  end

  def publish_here(text)
    @server.publish("x", text)
    calm
  end

  def lose(*texts)
    before = @server.listener.answers.size
    @server.listener.answers.delete_if { |_, words| texts.any? { |text| words.last.to_s.end_with?("\n#{text}") } }
    before - @server.listener.answers.size
  end

  def turn(server)
    server.feed
    %i[execute take listen hear].each { |which| server.step(which) }
    @redis.now += 1
  end

  def calm
    60.times { [@server, @other].each { |server| turn(server) } }
  end

  # Of what is missing.
  def reads
    @server.asked.count { |words| words.last == "next" }
  end

  def texts(channel)
    @server.followed[channel].items.map(&:text)
  end

  def written(channel)
    @redis.ever[channel].map(&:text)
  end
end
