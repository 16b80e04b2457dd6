# frozen_string_literal: true

# What the tests of Rondo::Scheduler share.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "support/waiting"

class FibersCase < Minitest::Test
  include Waiting

  # Runs the block on a thread with a scheduler, until all of its fibers have ended.
  # @yieldparam scheduler [Rondo::Scheduler]
  def run_fibers
    scheduler = Rondo::Scheduler.new
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(scheduler)
      yield scheduler
    end
    assert thread.join(PATIENCE), "all fibers end"
    assert_predicate scheduler, :closed?
  ensure
    thread&.kill
  end
end
