# frozen_string_literal: true

# What the tests of engines share: engines that are closed, and what they hand on, caught before it
# reaches a server of ours.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "timeout"

class OutletCase < Minitest::Test
  PATIENCE = 60

  # Takes what an engine hands on.
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
