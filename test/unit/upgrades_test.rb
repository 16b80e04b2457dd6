# frozen_string_literal: true

# Log lines about WebSockets that are refused: some in a second, then the number of the others.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"

class UpgradesTest < Minitest::Test
  # Keeps lines.
  class Lines < Array
    alias info push
  end

  def test_refused_origins_have_some_lines_a_second
    lines = Lines.new
    now = 7.0
    upgrades = Rondo::Upgrades.new(log: lines, origins: Rondo::Origins.from("https://a"), clock: -> { now })
    env = { "REMOTE_ADDR" => "192.0.2.1", "HTTP_ORIGIN" => "https://b" }
    1000.times { assert_equal 403, upgrades.refuse(env, false).first }
    assert_equal [%(Refused a WebSocket of 192.0.2.1: origin "https://b" (403))] * 20, lines
    now += 1
    2.times { upgrades.refuse(env, false) }
    assert_equal %(Refused a WebSocket of 192.0.2.1: origin "https://b" (403); 980 more were refused before it), lines[20]
    assert_equal lines.first, lines[21]
  end
end
