# frozen_string_literal: true

# Shared by the tests in which nodes of Redis are killed while two servers publish: clients write down what they saw, and
# a checker compares that with what was published.
# SPDX-License-Identifier: MIT

require_relative "../streams_case"
require "support/redis_ha"

class FailoverCase < StreamsCase
  CHANNEL = "kept:x"
  # Set by the long stage of bin/test.
  ROUNDS = Integer(ENV.fetch("RONDO_TEST_FAILOVERS", 1))

  # Publishes one message after the other until it is told to stop.
  class Publisher
    # @return [Array<String>] those that the server has taken
    attr_reader :sent

    # @yieldparam message [String] publishes it
    def initialize(name)
      @sent = []
      @thread = Thread.new do
        until @over
          message = "#{name}#{@sent.size}"
          yield message
          @sent << message
        end
      end
    end

    # @return [Array<String>]
    def finish
      @over = true
      @thread.join
      @sent
    end
  end

  private

  # Two servers, two clients of each, and a publisher at each.
  def begin_publishing
    @pair = [server, server]
    @crowd = Array.new(4) { |index| reader(@pair[index % 2], CHANNEL) }
    wait_until_heard(@pair, @crowd)
    @publishers = @pair.each_with_index.map do |each, index|
      Publisher.new("#{index}-") { |message| publish(each, CHANNEL, message) }
    end
    wait_for_progress
  end

  # One client goes on at the other server. It has read what waited: that may be more than the history has.
  def change_sides
    wait_for_progress
    @sides = @sides.to_i + 1
    @crowd.last.open(@pair[@sides % 2], CHANNEL)
  end

  # Every client has messages of both servers that were published from now on.
  def wait_for_progress
    marks = @publishers.map { |each| each.sent.size + 1 }
    @crowd.each do |each|
      each.read_until { marks.each_with_index.all? { |mark, index| each.seen.any? { |seen| later?(seen, index, mark) } } }
    end
  end

  def later?(message, index, mark)
    name, number = message.split("-")
    name == index.to_s && number.to_i >= mark
  end

  # Each message once, and all clients saw one order. What Redis had acknowledged and lost is told by a reset.
  def finish_and_check
    sent = @publishers.flat_map(&:finish)
    wait_for_the_end(sent)
    @crowd.each do |each|
      assert_equal [], each.seen.tally.select { |_, count| count > 1 }.keys, "doubles"
      missing = sent - each.seen
      assert_equal [], missing, "gaps that were not told" if each.resets.zero?
      assert_operator missing.size, :<, sent.size / 2
    end
    common = @crowd.map(&:seen).reduce(:&)
    assert_equal [common], @crowd.map { |each| each.seen & common }.uniq, "all clients saw one order"
  end

  # A message of the end comes after all that is in Redis; what waits at a server may come later.
  def wait_for_the_end(sent)
    20.times do |number|
      @pair.each_with_index { |each, index| publish(each, CHANNEL, "end#{index}-#{number}") }
      @crowd.each { |each| each.read_until { each.seen.count { |seen| seen.end_with?("-#{number}") && seen.start_with?("end") } == 2 } }
      break if @crowd.all? { |each| (sent - each.seen).empty? || (each.resets.positive? && number > 2) }
    end
  end
end
