# frozen_string_literal: true

# The mistakes of test/simulate/mutations.rb: each one can still be put in, so that tools/run_mutations, which takes
# long and runs seldom, does not end at one of them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "simulate/mutations"

class StreamsMistakesTest < Minitest::Test
  ROOT = File.expand_path("../../../..", __dir__)

  def test_each_mistake_has_one_place
    all = Simulate::MUTATIONS + Simulate::OPEN
    counts = all.to_h { |each| [each.name, File.read(File.join(ROOT, each.file)).scan(each.from).size] }
    assert_empty(counts.reject { |_, count| count == 1 })
    assert_equal all.size, counts.size
  end
end
