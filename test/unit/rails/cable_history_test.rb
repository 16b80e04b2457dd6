# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/rails/cable/history"

# The listeners of one broadcasting, with a client that counts.
class RailsCableHistoryTest < Minitest::Test
  History = Rondo::Rails::Cable::History

  class Client
    attr_reader :subscribed

    def initialize = @subscribed = []

    def subscribe(_name, since:)
      @subscribed << since
      true
    end
  end

  def setup
    @client = Client.new
    @sent = []
    socket = Struct.new(:client, :sent) { def transmit(text) = sent << text }.new(@client, @sent)
    @stream = History.stub(:channel, "name") { Rondo::Rails::Cable::ResumedStream.new(socket, "room") { nil } }
  end

  def listener(identifier, offset = nil) = History::Listener.new(@stream, identifier, offset, offset || 0, nil)

  # What waits for a block is lost with the block.
  def test_a_second_listener_without_history_changes_nothing
    2.times { |number| @stream.join(listener(number.to_s), nil) }
    assert_equal [nil], @client.subscribed
  end

  def test_a_listener_with_history_subscribes_again
    @stream.join(listener("a"), nil)
    @stream.join(listener("b", 7), 6)
    assert_equal [nil, 6], @client.subscribed
  end
end
