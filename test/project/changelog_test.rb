# frozen_string_literal: true

# Several people add entries at once. Each entry must be below a heading that names its kind, and each only once.
# SPDX-License-Identifier: MIT

require "test_helper"

class ChangelogTest < Minitest::Test
  LINES = File.readlines(File.expand_path("../../CHANGELOG.md", __dir__), chomp: true)
  KINDS = %w[Added Changed Deprecated Removed Fixed Security].freeze

  def test_each_entry_has_a_heading
    heading = nil
    LINES.each do |line|
      heading = line if line.start_with?("#")
      assert_includes KINDS.map { |kind| "### #{kind}" }, heading, line if line.start_with?("- ")
    end
  end

  def test_no_entry_stands_twice
    assert_empty LINES.grep(/\A- /).tally.select { |_, count| count > 1 }.keys
  end

  def test_no_conflict_is_left
    assert_empty LINES.grep(/\A(<{7}|={7}|>{7})/)
  end
end
