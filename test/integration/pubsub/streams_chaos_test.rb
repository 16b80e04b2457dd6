# frozen_string_literal: true

# Redis Streams while Redis dies, or cannot be reached: ten clients write down what they saw, and a checker compares that
# with what was published.
# SPDX-License-Identifier: MIT

require_relative "streams_case"
require "support/tcp_cutter"

class StreamsChaosTest < StreamsCase
  CLIENTS = 10
  CHANNEL = "kept:x"
  ALL = 300 # messages that a test publishes at least

  def setup
    super
    @cutter = TcpCutter.new(@redis.port)
  end

  def teardown
    super
    @cutter.close
  end

  def redis_words
    ["--appendonly", "yes", "--appendfsync", "everysec"]
  end

  def test_redis_is_killed_while_messages_are_published
    servers = [server, server]
    readers = crowd(servers)
    publishers = servers.each_with_index.map { |each, index| publisher(each, "#{index}-", 150) }
    2.times do
      wait_for_progress(readers.first, 20)
      @redis.kill
      servers.each { |each| each.wait_for_log(/is not available.*\z/m) }
      @redis.start
    end
    sent = publishers.map(&:value)
    check(sent, readers)
  end

  def test_a_server_that_was_cut_off_catches_up_before_it_delivers_live
    a = server
    b = server(redis: "redis://127.0.0.1:#{@cutter.port}")
    readers = crowd([a, b])
    sent = [publish_some(a, "a", 30)]
    readers.each { |each| each.read_until { each.seen.size == 30 } }
    @cutter.cut
    b.wait_for_log(/is not available/)
    sent << publish_some(b, "b", 30) # these wait at the server that is cut off
    sent.first.concat(publish_some(a, "a2-", 30))
    publishing = publisher(a, "a3-", 100)
    @cutter.mend
    sent.first.concat(publishing.value)
    check(sent, readers)
  end

  def test_clients_change_the_server_all_the_time_while_redis_is_cut_off_again_and_again
    a = server(redis: "redis://127.0.0.1:#{@cutter.port}")
    b = server
    readers = crowd([a, b])
    publishers = [publisher(a, "a", 200), publisher(b, "b", 200)]
    4.times do |round|
      wait_for_progress(readers.first, 15)
      readers.each { |each| each.read_until { each.last_id } } # without an id it would begin anew
      @cutter.cut
      @cutter.mend
      readers.each_with_index { |each, index| each.open((index + round).even? ? b : a, CHANNEL) }
    end
    check(publishers.map(&:value), readers)
  end

  private

  def crowd(servers)
    Array.new(CLIENTS) { |index| reader(servers[index % servers.size], CHANNEL) }.tap do |readers|
      wait_until_heard(servers, readers)
    end
  end

  def publish_some(server, name, count)
    Array.new(count) do |number|
      "#{name}#{number}".tap { |message| publish(server, CHANNEL, message) }
    end
  end

  def publisher(server, name, count)
    Thread.new { publish_some(server, name, count) }
  end

  def wait_for_progress(reader, count)
    wanted = [reader.seen.size + count, ALL].min
    reader.read_until { reader.seen.size >= wanted }
  end

  # Each message once, in the order of its publisher, and all clients saw the same. The publisher of a server is one of
  # two workers for each request, so its order is that of the ids.
  def check(sent, readers)
    all = sent.flatten
    readers.each { |each| each.read_until { each.seen.size >= all.size } }
    readers.each do |each|
      assert_equal [], all - each.seen, "gaps"
      assert_equal [], each.seen.tally.select { |_, count| count > 1 }.keys, "doubles"
      assert_equal 0, each.resets
    end
    assert_equal 1, readers.map(&:seen).uniq.size, "all clients saw one order"
  end
end
