# frozen_string_literal: true

# The benchmarks of outgoing WebSockets and of a chat by telnet: one short round of each, with all that they need.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "../../bench/chat"
require_relative "../../bench/connect"

class BenchConnectTest < Minitest::Test
  OPTIONS = %w[--rounds 1 --seconds 0.02].freeze
  FIGURE = /\d+\.\d\d/

  def table(run)
    out, err = capture_io { run.call }
    assert_empty err
    out.lines.drop(2).to_h { |line| line.delete_prefix("| ").chomp(" |\n").split(" | ", 2) }
  end

  def test_outgoing_websockets
    rows = table(Bench::ConnectRun.new([*OPTIONS, "--connections", "16", "floor", "rondo"]))
    assert_equal ["C client", "Rondo"], rows.keys
    rows.each_value { |figures| assert_match(/\A#{FIGURE} \| #{FIGURE} \| - \| -?\d+\z/, figures) }
  end

  def test_a_chat
    rows = table(Bench::ChatRun.new([*OPTIONS, "--members", "16", "floor", "rondo"]))
    assert_equal ["C floor", "Rondo"], rows.keys
    rows.each_value { |figures| assert_match(/\A#{FIGURE} \| #{FIGURE} \| -\z/, figures) }
  end
end
