# frozen_string_literal: true

# What the log says of a server that is away.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/pubsub/queued/outage"
require "stringio"

class OutageTest < Minitest::Test
  def setup
    @log = StringIO.new
    @outage = Rondo::PubSub::Queued::Outage.new("NATS", Rondo::Logger.new(io: @log)) { nil }
  end

  def test_many_reasons_are_not_many_lines
    500.times { |number| 2.times { @outage.refused("no #{number}") } }
    assert_equal 52, @log.string.lines.size
    assert_match(/further reasons are not shown/, @log.string.lines.last)
  end

  def test_a_reason_that_is_a_sentence
    @outage.begin("WRONGPASS the user is disabled.", true)
    assert_equal "! NATS is not available: WRONGPASS the user is disabled; trying again\n", @log.string
  end
end
