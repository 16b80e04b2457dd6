# frozen_string_literal: true

# The delays before the next try.
# SPDX-License-Identifier: MIT

require "test_helper"
require "minitest/mock"
require "rondo/cluster/backoff"

class BackoffTest < Minitest::Test
  def setup
    @backoff = Rondo::Backoff.new([0, 1, 5])
    @now = 1000.0
  end

  def at(seconds, &block)
    Rondo::ProcessLoop.stub(:now, @now + seconds, &block)
  end

  def test_the_first_try_is_not_delayed
    at(0) { assert_predicate @backoff, :over? }
  end

  def test_delays_grow_and_the_last_one_stays
    at(0) { assert_equal [0, 1, 5, 5], Array.new(4) { @backoff.failed } }
    assert_equal 4, @backoff.count
  end

  def test_it_is_over_after_the_delay
    at(0) { 2.times { @backoff.failed } }
    at(0.5) { refute_predicate @backoff, :over? }
    at(1) { assert_predicate @backoff, :over? }
  end

  def test_it_begins_anew
    at(0) { 3.times { @backoff.failed } }
    @backoff.reset
    at(0) { assert_equal 0, @backoff.failed }
  end
end
