# frozen_string_literal: true

# docs/SCALE.md invents no measurement: each figure of tools/scale/figures.tsv is in the file that it names. (That the
# page has the tables of the calculation, tree_test.rb checks.)
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "../../tools/scale/calculation"

class ScaleTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_measured_figures_are_in_their_files
    ScaleCalculation::FIGURES.each_value do |figure|
      text = File.read(File.join(ROOT, figure.file))
      assert_includes text, figure.text, figure.name
      assert_includes figure.text.delete(","), figure.value
    end
  end

  def test_the_page_names_each_assumption
    page = File.read(File.join(ROOT, "docs/SCALE.md"))
    ScaleCalculation::ASSUMED.each_value { |_, _, what| assert_includes page, what }
  end

  # Ten times as many clients at a tenth of the messages are as much for the engines of as many machines.
  def test_the_calculation_grows_as_it_should
    calculation = ScaleCalculation
    few = calculation.at(1) { calculation.published(1_000_000) }
    assert_in_delta few, calculation.published(10_000_000)
    assert_equal 2, calculation.machines(10)
    assert_operator calculation.redis_share(10_000_000), :>, 9 * calculation.redis_share(1_000_000)
    assert_in_delta 1, calculation.reached(1)
    assert_operator calculation.reached(1000), :<, 100
  end
end
