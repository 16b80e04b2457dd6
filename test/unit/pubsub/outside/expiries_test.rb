# frozen_string_literal: true

# Clients that are ended when their names expire: the test is the clock and the timer.
# SPDX-License-Identifier: MIT

require "test_helper"
require "minitest/mock"
require "rondo"
require "rondo/pubsub/signed"
require "rondo/pubsub/outside/expiries"

class ExpiriesTest < Minitest::Test
  # A timer that is due when the test says so. A server that begins to stop ends it.
  Timer = Struct.new(:block, :ended) do
    def call = block.call
    def cancel = self.ended = true
    alias_method :over?, :ended
  end

  Client = Struct.new(:codes) do
    def close(code) = codes << code
  end

  def setup
    @timers = []
    @now = 1000
    @expiries = Rondo::Signed::Expiries.new
  end

  def run
    begin_timer = ->(_milliseconds, &block) { Timer.new(block, false).tap { |timer| @timers << timer } }
    Rondo.stub(:run_every, begin_timer) { Rondo::Signed.stub(:second, -> { @now }) { super } }
  end

  def test_one_timer_ends_those_whose_time_is_over
    clients = [1000, 1001, 1002].map { |second| client(second) }
    @now = 1002
    @timers.each(&:call)
    assert_equal [[1008], [1008], []], clients.map(&:codes)
    assert_equal 1, @timers.size
  end

  def test_without_clients_there_is_no_timer
    one = client(1000)
    @expiries.remove(one, Time.at(1000))
    assert_equal [true], @timers.map(&:over?)
    client(1000)
    assert_equal [true, false], @timers.map(&:over?)
  end

  # There may be another one in the process, and a client of the first one may still be there.
  def test_a_server_after_one_that_has_stopped
    client(2000)
    @timers.first.ended = true
    later = client(1000)
    assert_equal [true, false], @timers.map(&:over?)
    @now = 1001
    @timers.last.call
    assert_equal [1008], later.codes
  end

  private

  def client(second)
    Client.new([]).tap { |one| assert @expiries.add(one, Time.at(second)) }
  end
end
