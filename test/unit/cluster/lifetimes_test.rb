# frozen_string_literal: true

# Limits of workers, their jitter, and which workers have reached them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/cluster/lifetimes"
require "rondo/config/settings"

class LifetimesTest < Minitest::Test
  # The part of a handle that is read here.
  Worker = Struct.new(:pid, :requests, :age, :limits, keyword_init: true)

  def lifetimes(**settings)
    Rondo::Lifetimes.new(Rondo::Settings::Resolved.new(settings.transform_values { |value| [value, "test"] }))
  end

  def test_nothing_is_limited_by_default
    assert_empty lifetimes.choose
  end

  def test_limits_are_lower_by_the_jitter_at_most
    given = lifetimes(max_requests: 1000, max_age: 100, max_memory: 1 << 20, recycle_jitter: 20)
    chosen = Array.new(50) { given.choose }
    chosen.each do |limits|
      assert_includes 800..1000, limits[:requests]
      assert_includes 80..100, limits[:age]
      assert_equal %i[requests memory age], limits.keys
    end
    assert_operator chosen.uniq.size, :>, 10
    assert_equal({ requests: 7 }, lifetimes(max_requests: 7, recycle_jitter: 0).choose)
  end

  def test_what_is_reached
    given = lifetimes(max_memory: 1, memory_measure: :pss)
    { { requests: 10 } => "10 requests", { age: 5 } => "6 s old", { requests: 11, age: 7 } => nil }.each do |limits, words|
      worker = Worker.new(pid: Process.pid, requests: 10, age: 6.2, limits: limits)
      words ? assert_equal(words, given.reached(worker)) : assert_nil(given.reached(worker))
    end
    large = Worker.new(pid: Process.pid, requests: 0, age: 0, limits: { memory: 1 })
    assert_match(/\A\d+ MiB of memory \(pss\)\z/, given.reached(large))
  end

  def test_memory
    assert_operator Rondo::Lifetimes.memory(Process.pid), :>, 1 << 20
    assert_operator Rondo::Lifetimes.memory(Process.pid, :pss), :>, 1 << 20
    assert_equal 0, Rondo::Lifetimes.memory(4_000_000)
  end
end
