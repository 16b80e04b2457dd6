# frozen_string_literal: true

# The number of workers for each setting.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/config/settings"
require "rondo/config/worker_count"

class WorkerCountTest < Minitest::Test
  def count(value, source = "test")
    Rondo::WorkerCount.new(Rondo::Settings::Resolved.new({ workers: [value, source] }))
  end

  def test_none_by_default
    none = Rondo::WorkerCount.new(Rondo::Settings::Resolved.new)
    assert_equal [0, false, "0 (default)"], [none.number, none.cluster?, none.to_s]
  end

  def test_a_number
    assert_equal [3, true, "3 (-w)"], [count(3, "-w").number, count(3).cluster?, count(3, "-w").to_s]
    assert_equal 3, count("3").number
  end

  def test_auto
    assert_equal Rondo::CPUCount.usable, count("auto").number
    assert_match(/\A\d+ \(auto, by WEB_CONCURRENCY: CPUs/, count("auto", "WEB_CONCURRENCY").to_s)
  end

  [-1, 257, "many", nil, 1.5].each do |value|
    define_method("test_#{value.inspect}_is_none") do
      error = assert_raises(Rondo::ConfigurationError) { count(value) }
      assert_equal "workers (test) must be auto or a number up to 256, not #{value.inspect}", error.message
    end
  end
end
