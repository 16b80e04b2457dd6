# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The benchmarks of Rails, with few clients.

require "test_helper"
require_relative "../../bench/rails"

class BenchRailsTest < Minitest::Test
  OPTIONS = { servers: %w[rondo], clients: [4], deliveries: 40, seconds: 0.2, streams: 12 }.freeze

  # More streams than threads.
  def test_live
    table = Bench::RailsLive.new(OPTIONS).call
    row = table[/^\| Rondo .*/].split(" | ")
    assert_equal "12", row[1], table
    assert_operator row[3].to_f, :<, 1.5, "two threads for each"
  end

  def test_cable
    table = Bench::RailsCable.new(OPTIONS).call
    assert_match(/^\| Rondo \S+ \| 4 \| [\d.]+ \|/, table)
  end
end
