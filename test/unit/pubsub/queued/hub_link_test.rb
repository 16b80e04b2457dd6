# frozen_string_literal: true

# An engine that keeps messages, behind a hub; the test is the hub. For which request a copy is.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/queued/hub_link"
require "socket"
require "stringio"
require "timeout"

class QueuedHubLinkTest < Minitest::Test
  PATIENCE = 60
  PATTERN = 2
  SUBSCRIBE = 1
  UNSUBSCRIBE = 2
  REPLAY = 4
  Frames = Rondo::PubSub::RelayFrames

  # Notes what it is told.
  class Notes < Rondo::PubSub::Engine
    attr_writer :hub_link
    attr_reader :told

    def initialize
      super
      @told = Thread::Queue.new
    end

    def subscribe(*) = @told << :subscribe
    def unsubscribe(*) = @told << :unsubscribe
    def copy(_channel) = @told << :copy
  end

  def setup
    @hub, socket = UNIXSocket.pair
    @engine = Notes.new
    @link = Rondo::PubSub::Queued::HubLink.new(@engine, socket, Rondo::Logger.new(io: StringIO.new)).start
  end

  def teardown
    @link.close
    @hub.close
  end

  def test_a_copy_has_the_number_of_the_last_request
    ask(SUBSCRIBE, "c", 1)
    assert_equal 0, number_of_copy
    ask(REPLAY, "c", 7)
    assert_equal 7, number_of_copy
    ask(REPLAY, "c", 8)
    2.times { assert_equal 8, number_of_copy }
    ask(UNSUBSCRIBE, "c", 0, PATTERN)
    assert_equal 8, number_of_copy
    ask(UNSUBSCRIBE, "c", 0)
    ask(SUBSCRIBE, "c", 1)
    assert_equal 0, number_of_copy
  end

  private

  # When the engine hears of the second frame, the first one is over.
  def ask(type, channel, id, flags = 0)
    @hub.write(frame(type, channel, id, flags) + frame(SUBSCRIBE, "behind it", 0))
    2.times { Timeout.timeout(PATIENCE) { @engine.told.pop } }
  end

  def frame(type, channel, id, flags = 0)
    [type, flags, channel.bytesize, 0, id].pack(Frames::HEAD) + channel
  end

  def number_of_copy
    assert @link.copy("c", 10, 20, 30, [])
    frames = Frames.copy_begin("c", 10, 20, 30, 0) + Frames.copy_end("c")
    read = Timeout.timeout(PATIENCE) { @hub.read(frames.bytesize) }
    head = read.unpack(Frames::HEAD)
    assert_equal [5, 24, 10], head.values_at(0, 3, 4)
    read[Frames::HEAD_BYTES + 1, 24].unpack("Q>3").last
  end
end
