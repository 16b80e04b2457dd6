# frozen_string_literal: true

# Redis Streams: a client goes on at another server where it was, without a gap and without a double.
# SPDX-License-Identifier: MIT

require_relative "streams_case"

class StreamsTest < StreamsCase
  def test_a_client_of_one_server_resumes_at_another
    a = server
    b = server
    reader = reader(a, "kept:x")
    wait_for_subscribers("kept:x", 1)
    10.times do |number|
      publish(number.odd? ? a : b, "kept:x", number)
      reader.read_until { reader.seen.size > number }
    end
    reader.close
    publish_in_turn(a, "kept:x", 10..19)
    reader.open(b, "kept:x")
    reader.read_until { reader.seen.size == 20 }
    wait_for_subscribers("kept:x", 1)
    publish_in_turn(a, "kept:x", 20..29)
    reader.read_until { reader.seen.size == 30 }
    assert_equal (0..29).map(&:to_s), reader.seen
    assert_equal 0, reader.resets
  end

  # Its only id is that of the last event, whichever channel that was of.
  def test_a_client_of_several_channels_resumes_all_of_them
    a = server
    b = server
    other = reader(b, "kept:y")
    reader = reader(a, "kept:x", "kept:y")
    %w[kept:x kept:y].zip([1, 2]) { |name, count| wait_for_subscribers(name, count) }
    publish(a, "kept:y", "y1")
    reader.read_until { reader.seen.size == 1 }
    publish(a, "kept:x", "x1")
    reader.read_until { reader.seen.size == 2 }
    reader.close
    publish(a, "kept:x", "x2")
    publish(a, "kept:y", "y2")
    reader.open(b, "kept:y", "kept:x")
    reader.read_until { reader.seen.size == 4 }
    other.read_until { other.seen.size == 2 }
    assert_equal %w[x1 x2 y1 y2], reader.seen.sort
    assert_equal %w[y1 y2], other.seen
    assert_equal 0, reader.resets
  end

  def test_a_channel_without_a_rule_leaves_nothing_in_redis
    a = server
    b = server
    reader = reader(b, "plain")
    wait_for_subscribers("plain", 1)
    ["1", "\0rondo 1 2 3 t\n"].each { |message| publish(a, "plain", URI.encode_www_form_component(message)) }
    reader.read_until { reader.seen.size == 2 }
    publish(a, "plain", "last")
    reader.read_until { reader.seen.last == "last" }
    assert_equal 3, reader.seen.size
    assert_nil reader.last_id
    assert_empty @redis.cli("KEYS", "{rondo}:s:*")
  end

  def test_a_redis_that_lost_everything_is_a_reset_for_who_is_here_and_who_comes_back
    a = server
    b = server
    here = reader(a, "kept:x")
    away = reader(b, "kept:x")
    wait_for_subscribers("kept:x", 2)
    publish(a, "kept:x", "1")
    [here, away].each { |each| each.read_until { each.seen.size == 1 } }
    away.close
    @redis.cli("FLUSHALL")
    publish(b, "kept:x", "2")
    here.read_until { here.seen.size == 2 }
    assert_equal 1, here.resets
    away.open(b, "kept:x")
    away.read_until { away.resets == 1 && away.seen.size == 2 }
    a.wait_for_log(/gap of kept:x told/)
    b.wait_for_log(/gap of kept:x told/)
  end

  # Somebody trimmed it; or the id is of no message of this Redis.
  def test_what_a_stream_does_not_have_is_a_reset
    a, reader = server_with_reader("1")
    reader.close
    publish_in_turn(a, "kept:x", %w[2 3])
    @redis.cli("XTRIM", "{rondo}:s:kept:x", "MAXLEN", "1")
    b = server
    reader.open(b, "kept:x")
    reader.read_until { reader.seen.size == 2 && reader.resets == 1 }
    assert_equal %w[1 3], reader.seen
    stranger = reader(b, "kept:x", after: "8999999999999999")
    stranger.read_until { stranger.resets == 1 }
  end

  def test_redis_keeps_as_much_as_the_rule_says
    a = server
    5.times { |number| publish(a, "few:x", number) }
    eventually("five written") { @redis.cli("XINFO", "STREAM", "{rondo}:s:few:x")[/entries-added\n(\d+)/, 1] == "5" }
    assert_equal "3", @redis.cli("XLEN", "{rondo}:s:few:x")
    assert_includes 1..60_000, @redis.cli("PTTL", "{rondo}:s:few:x").to_i
    old = ((Time.now.to_i - 100) * 1_000_000).to_s
    @redis.cli("DEL", "{rondo}:s:few:x")
    @redis.cli("XADD", "{rondo}:s:few:x", "#{old}-0", "p", "0", "k", "t", "m", "old")
    publish(a, "few:x", "new")
    eventually("the old one is gone") { @redis.cli("XRANGE", "{rondo}:s:few:x", "-", "+")[/old|new/] == "new" }
  end

  def test_many_clients_that_come_back_cost_redis_one_read
    a, reader = server_with_reader("0")
    publish_in_turn(a, "kept:x", 1..60)
    b = server
    before = reads
    crowd = Array.new(50) { reader(b, "kept:x", after: reader.last_id) }
    crowd.each { |each| each.read_until { each.seen.size == 60 } }
    assert_equal 1, reads - before
    assert_equal [(1..60).map(&:to_s)], crowd.map(&:seen).uniq
  end

  def test_two_applications_in_one_redis_by_their_prefixes
    a = server("-C", prefix_file("one"))
    b = server("-C", prefix_file("two"))
    readers = [reader(a, "kept:x", "plain"), reader(b, "kept:x", "plain")]
    %w[one two].each { |prefix| wait_for_subscribers("#{prefix}:plain", 1) }
    { a => "a", b => "b" }.each do |each, message|
      publish(each, "kept:x", message)
      publish(each, "plain", "last")
    end
    readers.zip(%w[a b]) do |each, message|
      each.read_until { each.seen.size == 2 }
      assert_equal [message, "last"].sort, each.seen.sort
    end
  end

  private

  def reads
    @redis.cli("INFO", "commandstats")[/cmdstat_xrevrange:calls=(\d+)/, 1].to_i
  end

  def prefix_file(prefix)
    write "#{prefix}.rb", "redis_prefix #{prefix.inspect}\n"
    "#{prefix}.rb"
  end
end
