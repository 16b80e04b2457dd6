# frozen_string_literal: true

# What the benchmark of stages reads out of a file of callgrind.
# SPDX-License-Identifier: MIT

require "test_helper"
require "tmpdir"
require_relative "../../bench/stages"

class BenchStagesTest < Minitest::Test
  # A loop of ours calls a function of Ruby, which allocates, sweeps, and calls back. An inlined function of the room
  # `base` counts for its caller, one of another room for itself.
  FILE = <<~CALLGRIND
    events: Ir
    ob=(1) /lib/rondo/rondo.so
    fl=(1) /x/ext/rondo/app/rb_dispatch.c
    fn=(1) serve
    10 5
    fi=(2) /x/ext/rondo/base/slice.h
    +2 3
    fe=(1)
    +1 2
    cob=(2) /lib/libruby-3.1.so
    cfi=(3) ???
    cfn=(2) rb_protect
    calls=1 0
    * 100

    ob=(2)
    fl=(3)
    fn=(2)
    0 10
    cfn=(3) rb_newobj_of
    calls=1 0
    * 40
    cob=(1)
    cfi=(4) /x/ext/rondo/rack/rb_env.c
    cfn=(4) fill
    calls=1 7
    * 50

    fn=(3)
    0 15
    cfn=(5) sweep
    calls=1 0
    * 25

    fn=(5)
    0 25

    ob=(1)
    fl=(4)
    fn=(4)
    7 50

    totals: 110
  CALLGRIND

  def setup
    Dir.mktmpdir do |folder|
      path = File.join(folder, "out")
      File.write(path, FILE)
      @found = Bench::Callgrind.new(path)
    end
  end

  def test_sums
    assert_equal [110, 25], [@found.total, @found.collector]
    assert_equal({ "app/rb_dispatch.c" => 10, "rack/rb_env.c" => 50 }, @found.own)
    assert_equal({ "app/rb_dispatch.c" => 100, "rack/rb_env.c" => -50 }, @found.lent)
  end

  def test_stages
    rows = Bench::Stages::Figures.new([@found]) / 10
    assert_equal %w[5 1], [rows["env"][/\A\d+/], rows["call, with the application"][/\A\d+/]]
    assert_equal %w[3 11], rows.values_at("the collector, contained above", "all")
  end
end
