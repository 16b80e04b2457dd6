# frozen_string_literal: true

# What Puma.stats makes of the numbers of a process.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/puma/statistics"

class PumaStatisticsTest < Minitest::Test
  ROW = { queue: 4, threads: 3, busy: 2, max_threads: 5, requests: 70, max_queue_seen: 9, connections: 11 }.freeze

  def status(**others)
    Rondo::PumaStatistics.new(nil).status(ROW.merge(others))
  end

  def test_the_numbers_of_a_process
    assert_equal({ backlog: 4, running: 3, pool_capacity: 3, busy_threads: 2, max_threads: 5, requests_count: 70,
                   backlog_max: 9, reactor_max: 11, io_threads: 0 }, status)
  end

  def test_pool_capacity_is_what_could_begin_now
    assert_equal 5, status(busy: 0)[:pool_capacity]
    assert_equal 0, status(busy: 5)[:pool_capacity]
    assert_equal 0, status(busy: 7)[:pool_capacity] # bodies that came back in past others
  end
end
