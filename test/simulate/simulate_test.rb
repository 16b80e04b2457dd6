# frozen_string_literal: true

# What clients are promised, in random histories of several machines and one Redis. `tools/simulate` runs more of them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "simulate/runs"

class SimulateTest < Minitest::Test
  HISTORIES = 2000

  def test_promises_are_kept_in_random_histories
    sum, failures = Simulate.run(1..HISTORIES)
    assert_empty failures.map(&:to_s)
    assert_equal HISTORIES, sum.histories
    # What is not there cannot break.
    [sum.messages, sum.replayed, sum.resets, sum.returns, sum.faults].each { |count| assert_operator count, :>, HISTORIES }
  end

  def test_a_seed_is_one_history
    assert_equal Simulate.show(7), Simulate.show(7)
    refute_equal Simulate.show(7), Simulate.show(8)
  end

  # A client that loses what was on its way learns nothing of it.
  def test_a_broken_promise_names_its_seed
    Simulate::Worker.class_eval do
      alias_method :whole_take, :take
      def take(type, *rest) = (whole_take(type, *rest) unless type == :message && rest.last.end_with?("3"))
    end
    _, failures = Simulate.run(1..20, 1)
    assert_match(/\Aseed \d+ .*(missing|did not come|after it had subscribed).*\n  tools.simulate --seed \d+\z/, failures.first.to_s)
  ensure
    Simulate::Worker.class_eval { alias_method :take, :whole_take }
  end
end
