# frozen_string_literal: true

# docs/BENCH.md has each option of rondo bench, with its limits.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/command/bench"

class BenchOptionsTest < Minitest::Test
  Bench = Rondo::Bench
  ROWS = File.readlines(File.expand_path("../../../../docs/BENCH.md", __dir__)).grep(/\A\| `-/)

  def test_every_option_is_documented
    names = Bench::Options.new([]).help.scan(/--[a-z]+/).uniq - %w[--help]
    assert_operator names.size, :>, 9
    assert_equal names.sort, ROWS.flat_map { |row| row.scan(/--[a-z]+/) }.uniq.sort
  end

  def test_limits_are_documented
    Bench::Options::LIMITS.each do |name, (least, most, usual)|
      row = ROWS.find { |text| text.include?("`--#{name} N`") } || flunk("no row for --#{name}")
      assert_includes row, "(#{usual}) | #{least} to #{most.to_s.gsub(/(?<=\d)(?=\d{3}\z)/, ",")} |"
    end
    assert_includes ROWS.find { |row| row.include?("--against") }, "| #{Bench::Options::MOST_SERVERS} |"
    assert_includes ROWS.find { |row| row.include?("--url") }, "#{Bench::Options::MOST_PATHS} paths"
  end
end
