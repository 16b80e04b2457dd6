# frozen_string_literal: true

# An event stream of several channels has one last id. It breaks off after each event in turn and comes back, to another
# worker or to another server: it sees everything once.
# SPDX-License-Identifier: MIT

require_relative "streams_case"

# For any history.
module BreakingOff
  CHANNELS = %w[kept:a kept:b kept:c].freeze
  # Blocks of one channel, so that the answer of one channel has higher ids than those of the others.
  ORDER = [0, 0, 1, 1, 2, 0, 1, 2, 2, 2, 0, 0, 1, 1, 1].freeze

  # Takes no more than so many messages of a connection: what else is on its way is lost.
  class Breaking < StreamsCase::Reader
    attr_writer :most

    def open(...)
      @taken = 0
      super
    end

    def broken?
      @taken == @most
    end

    private

    def take
      super until broken? || @stream.events.empty?
    end

    def note(data)
      super
      @taken += 1 unless data == "open"
    end
  end

  def test_who_breaks_off_anywhere_sees_everything_once
    servers = all_servers
    first = reader(servers.first, *CHANNELS)
    wait_for_readers(servers.first)
    publish(servers.first, "kept:a", "first")
    first.read_until { words_of(first) == ["first"] }
    since = first.last_id
    words = ORDER.each_with_index.map { |index, number| [CHANNELS[index], "#{index}.#{number}"] }
    words.each { |channel, word| publish_next(servers.first, channel, word) }
    1.upto(5) do |most|
      seen = resumed(servers, since, most, words.size)
      assert_equal words.map(&:last), seen, "#{most} at a time"
    end
  end

  private

  # Without those that were sent until one came.
  def words_of(reader)
    reader.seen - ["probe"]
  end

  def resumed(servers, since, most, count)
    breaking = Breaking.new
    @readers << breaking
    breaking.most = most
    breaking.last_id = since
    (0..).each do |turn|
      breaking.open(servers[turn % servers.size], *CHANNELS.rotate(turn))
      breaking.read_until { breaking.broken? || words_of(breaking).size >= count }
      return words_of(breaking) if words_of(breaking).size >= count
    end
  ensure
    assert_equal 0, breaking.resets
  end
end

class StreamsChannelsTest < StreamsCase
  include BreakingOff

  private

  def all_servers = [server, server]
  def publish_next(server, channel, word) = publish_in_turn(server, channel, [word])

  def wait_for_readers(_server)
    CHANNELS.each { |channel| wait_for_subscribers(channel, 1) }
  end
end

# The history of one server, for its workers.
class KeptChannelsTest < StreamsCase
  include BreakingOff

  private

  def start_store = nil
  def stop_store = nil
  def all_servers = [start("-w", "2")]

  # The hub knows the last subscription when a message of it comes.
  def wait_for_readers(server)
    eventually("a message comes") do
      publish(server, CHANNELS.last, "probe")
      @readers.first.wait(0.1) { @readers.first.seen.any? }
    end
  end

  # Each worker passes it on by itself: the next one waits for a client that has it.
  def publish_next(server, channel, word)
    publish(server, channel, word)
    @readers.first.read_until { words_of(@readers.first).last == word }
  end
end

# One process without a hub.
class KeptHereChannelsTest < KeptChannelsTest
  private

  def all_servers = [start("-w", "0")]
end
