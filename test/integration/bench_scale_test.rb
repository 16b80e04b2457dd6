# frozen_string_literal: true

# The benchmark of what grows: one short round of rows that need little.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require_relative "../../bench/scale"

class BenchScaleTest < Minitest::Test
  def test_a_table_and_a_picture
    Dir.mktmpdir do |folder|
      out = File.join(folder, "scale.md")
      _, said = capture_io { Bench::ScaleRun.new(["--rounds", "1", "--seconds", "0.1", "--out", out, "channels", "timers"]).call }
      assert_equal 2, said.scan(/^bench: \w+, round 1$/).size
      text = File.read(out)
      { "channels" => [64, 51_200], "timers" => [1, 90_000] }.each do |title, (first, last)|
        assert_match(/^## #{title}\n\n\| #{title} \|.*\n.*\n\| #{first} \| \d+\.\d\d \| 1\.000 \|\n/, text)
        assert_match(/^\| #{last} \| \d+\.\d\d \| \d+\.\d{3} \|\n\nTen times as many: [+-]\d+\.\d %\.$/, text)
      end
      assert_equal %w[channels timers], File.read(out.sub(".md", ".svg")).scan(%r{>(channels|timers)</text>}).flatten
    end
  end

  def test_a_row_that_is_not_there
    _, said = capture_io { assert_raises(SystemExit) { Bench::ScaleRun.new(["moons"]) } }
    assert_match(/no such row: moons; there are connections, fields,/, said)
  end
end
