# frozen_string_literal: true

# Programs that were written for iodine, unchanged: each has the transcript on Rondo that it has on iodine 0.7.60, but for
# the lines of `differences.rb`. With RONDO_COMPAT=iodine they run on iodine itself, and what is in `transcripts/` has to
# be what it says; RONDO_COMPAT=record writes that down.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "differences"
require_relative "scenarios"

class IodineScenariosTest < Minitest::Test
  KIND = ENV.fetch("RONDO_COMPAT", "rondo").to_sym
  TRANSCRIPTS = File.join(__dir__, "transcripts")

  Scenarios::ALL.each do |name, scenario|
    define_method("test_#{name}") { try(scenario) }
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

  private

  def try(scenario)
    return compare(recorded(scenario.name), scenario.run(:rondo), scenario.name) if KIND == :rondo

    skip "iodine 0.7.60 is not installed (RONDO_TEST_IODINE)" unless Contender::IODINE
    found = scenario.run(:iodine)
    return File.binwrite(path(scenario.name), found) if KIND == :record

    assert_equal recorded(scenario.name), found
  end

  def compare(iodine, rondo, name)
    assert_equal Differences.apply(name, iodine), rondo
  end

  def recorded(name)
    File.binread(path(name))
  end

  def path(name)
    File.join(TRANSCRIPTS, "#{name}.txt")
  end
end
