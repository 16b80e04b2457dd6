# frozen_string_literal: true

# Programs that were written for iodine, unchanged: each has the transcript on Rondo that it has on iodine 0.7.60
# (recorded.rb), but for the lines of `differences.rb`.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "differences"
require_relative "recorded"
require_relative "scenarios"
require_relative "stand_in"

class IodineScenariosTest < Minitest::Test
  include Recorded

  Scenarios::ALL.each do |name, scenario|
    define_method("test_#{name}") do
      skip "a network and mounts of one's own: unshare and ip cannot make them here" if Scenarios::STAND_INS.include?(name) && !StandIn.possible?
      compare(name, scenario.method(:run)) { |theirs, ours| assert_equal Differences.apply(name, theirs), ours }
    end
  end

  def test_each_snippet_is_run
    unchanged = Scenarios::ALL.values.reject { |scenario| scenario.options[:text] }
    run = unchanged.map { |scenario| "#{scenario.program}.txt" } + Differences::NOT_RUN.keys
    assert_equal Dir.children(Contender::SNIPPETS).grep(/\.txt\z/).sort, run.uniq.sort
  end

  def test_each_difference_has_a_reason_and_a_scenario
    assert_empty Differences::LINES.keys - Scenarios::ALL.keys
    assert(Differences::LINES.values.flatten(1).all? { |_, _, reason| reason.size > 20 })
  end
end
