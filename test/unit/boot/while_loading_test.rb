# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/boot/while_loading"

class WhileLoadingTest < Minitest::Test
  # Remembers what it was called with, and has found what it looks for when that is the class of this name.
  class Seeker
    attr_reader :seen

    def initialize(name)
      @name = name
      @seen = []
    end

    def call(ended)
      @seen << ended&.name
      ended&.name == @name
    end
  end

  ONE = "module WhileLoadingTest::One; end"
  TWO = "module WhileLoadingTest::Two; end"

  def load(code)
    TOPLEVEL_BINDING.eval(code, __FILE__)
  end

  def test_each_looks_until_it_has_found
    first = Seeker.new("WhileLoadingTest::One")
    second = Seeker.new("WhileLoadingTest::Two")
    result = Rondo::WhileLoading.seek([first, second]) do
      3.times { [ONE, TWO].each { |code| load(code) } }
      :loaded
    end
    assert_equal :loaded, result
    assert_equal [nil, "WhileLoadingTest::One"], first.seen
    assert_equal [nil, "WhileLoadingTest::One", "WhileLoadingTest::Two"], second.seen
  end

  # Classes and modules are looked at by nobody afterwards: that costs each one that ends.
  def test_nothing_is_traced_in_the_end
    seeker = Seeker.new("WhileLoadingTest::One")
    after = Rondo::WhileLoading.seek([seeker]) do
      load(ONE)
      tracing?
    end
    refute after
    seeker = Seeker.new("not there")
    assert_raises(ZeroDivisionError) { Rondo::WhileLoading.seek([seeker]) { 1 / 0 } }
    load(ONE)
    assert_equal [nil], seeker.seen
    refute_predicate self, :tracing?, "after a failure"
  end

  def tracing?
    TracePoint.stat.values.sum(&:first).positive?
  end

  def test_what_was_there_before_is_not_traced
    refute Rondo::WhileLoading.seek([->(_) { true }]) { tracing? }
  end
end
