# frozen_string_literal: true

# Each mistake of test/simulate/mutations.rb still finds its place in the sources: tools/run_mutations runs only in
# `bin/test --long`.
# SPDX-License-Identifier: MIT

require "test_helper"
require "simulate/mutations"

class MutationsTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  def test_each_mistake_has_one_place
    wrong = Simulate::MUTATIONS.reject { |mutation| File.read(File.join(ROOT, mutation.file)).scan(mutation.from).size == 1 }
    assert_empty wrong.map(&:name)
    assert_operator Simulate::MUTATIONS.size, :>, 50
  end
end
