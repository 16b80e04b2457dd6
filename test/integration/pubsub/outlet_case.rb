# frozen_string_literal: true

# Shared by the tests of engines: engines that are closed at the end, and the messages that they deliver, caught before
# they reach a server.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "timeout"

class OutletCase < Minitest::Test
  PATIENCE = 60

  # Takes the messages that an engine delivers.
  class Outlet
    attr_reader :received

    def initialize
      @received = Thread::Queue.new
    end

    def publish_here(channel, message)
      @received << [channel, message]
      true
    end
  end

  def setup
    @outlet = Rondo::PubSub.outlet = Outlet.new
    @engines = []
  end

  def teardown
    @engines.each { |engine| engine.close(0) }
    Rondo::PubSub.outlet = nil
  end

  private

  def take(count)
    Array.new(count) { |index| Timeout.timeout(PATIENCE) { @outlet.received.pop } rescue flunk("message #{index} never came") }
  end

  def eventually(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (found = yield)
      flunk "this never came: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.005)
    end
    found
  end
end
