# frozen_string_literal: true

# Redis Streams: a client goes on at another server where it was, without a gap and without a double.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "support/resuming"

class StreamsTest < StreamsCase
  include Resuming

  READS_OF_A_COPY = 1

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

  # Somebody trimmed it.
  def test_what_a_stream_does_not_have_is_a_reset
    a, reader = server_with_reader("1")
    reader.close
    publish_in_turn(a, "kept:x", %w[2 3])
    @redis.cli("XTRIM", "{rondo}:s:kept:x", "MAXLEN", "1")
    b = server
    reader.open(b, "kept:x")
    reader.read_until { reader.seen.size == 2 && reader.resets == 1 }
    assert_equal %w[1 3], reader.seen
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

  def lose_everything(*)
    @redis.cli("FLUSHALL")
  end

  def reads
    @redis.cli("INFO", "commandstats")[/cmdstat_xrevrange:calls=(\d+)/, 1].to_i
  end

  def prefix_file(prefix)
    write "#{prefix}.rb", "redis_prefix #{prefix.inspect}\n"
    "#{prefix}.rb"
  end
end
