# frozen_string_literal: true

# The table of drivers in docs/FIBERS.md says what the tests show, of the versions that they use.
# SPDX-License-Identifier: MIT

require "test_helper"

class DriversTableTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  TABLE = File.read(File.join(ROOT, "docs/FIBERS.md"))[/^## Drivers\n(.*?)^## /m, 1]
              .scan(/^\| ([\w:-]+) \| ([\w.']+) \| (\w+) \|/).reject { |row| row[0] == "driver" }
  LOCKED = File.read(File.join(ROOT, "test/drivers/Gemfile.lock")).scan(/^    ([\w-]+) \(([\d.]+)/).to_h

  def test_each_row_is_tested
    tested = Dir[File.join(ROOT, "test/{drivers,unit/fibers}/*_test.rb")].flat_map do |path|
      File.read(path).scan(/^  ROW = \["([^"]+)", "(\w+)"\]/)
    end
    assert_operator tested.size, :>, 10
    assert_equal tested.sort, TABLE.map { |name, _, verdict| [name, verdict] }.sort
  end

  def test_versions_are_those_of_the_tests
    wrong = TABLE.reject { |name, version| version == (LOCKED[name.downcase] || "Ruby's") }
    assert_empty wrong
  end
end
