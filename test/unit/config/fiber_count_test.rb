# frozen_string_literal: true

# How many fibers there may be, and what is said if it is too many.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo/config/configuration"
require "rondo/config/fiber_count"

class FiberCountTest < Minitest::Test
  Count = Rondo::FiberCount
  ROOT = File.expand_path("../../..", __dir__)

  def test_none_by_default
    none = Count.of(Rondo::Settings::Resolved.new)
    refute_predicate none, :any?
    assert_same none, none.check
    Count.new(0, 100_000, areas: 10).check
  end

  def test_as_many_as_there_are_memory_areas_for
    assert_equal 14_744, Count.new(1, 0, areas: 65_530).most
    assert_equal 13_720, Count.new(13_720, 1024, areas: 65_530).check.most
    assert_equal 0, Count.new(1, 100_000, areas: 65_530).most
  end

  def test_too_many
    error = assert_raises(Rondo::SettingError) { Count.new(20_000, 1024, areas: 65_530).check }
    assert_equal "fibers 20000: at most 13720 are possible here, because they and max_parked_bodies (1024) may have 45 % " \
                 "of the 65530 memory areas that vm.max_map_count allows, 2 each; sysctl vm.max_map_count=93440 allows 20000",
                 error.message
  end

  def test_the_line_names_enough
    [[1, 1024], [14_000, 0], [123_457, 3]].each do |number, parked|
      error = assert_raises(Rondo::SettingError) { Count.new(number, parked, areas: 100).check }
      enough = error.message[/max_map_count=(\d+)/, 1].to_i
      Count.new(number, parked, areas: enough).check
      assert_operator Count.new(number, parked, areas: enough - 2).most, :<, number
    end
  end

  def test_a_system_that_names_no_limit
    count = Count.new(1_000_000, 1024, areas: nil)
    assert_nil count.most
    assert_same count, count.check
  end

  def test_the_limit_of_this_system
    skip "there is no #{Count::LIMIT}" unless File.readable?(Count::LIMIT)
    assert_equal File.read(Count::LIMIT).to_i, Count.areas
  end

  # Another process, because Ruby reads these variables when it begins.
  def test_the_stacks_are_those_of_this_process
    assert_match(/\A7, each with a stack of \d+k for Ruby and \d+[km] for C\z/, Count.new(7, 0).to_s)
    variables = { "RUBY_FIBER_VM_STACK_SIZE" => "1048576", "RUBY_FIBER_MACHINE_STACK_SIZE" => "2097152" }
    out, = Open3.capture2(variables, RbConfig.ruby, "-I#{ROOT}/lib", "-e", 'require "rondo"; print Rondo::FiberCount.new(7, 0)')
    assert_equal "7, each with a stack of 1m for Ruby and 2m for C", out
  end

  def test_a_server_refuses_them
    skip "there is no #{Count::LIMIT}" unless File.readable?(Count::LIMIT)
    most = Count.new(1, 1024).most
    error = assert_raises(Rondo::SettingError) { Rondo::Server.new(->(_env) {}, fibers: most + 1) }
    assert_match(/\Afibers #{most + 1}: at most #{most} are possible here, /, error.message)
    assert_raises(Rondo::SettingError) { Rondo::Server.new(->(_env) {}, fibers: most, max_parked_bodies: 1025) }
    assert_raises(Rondo::SettingError) { Rondo::Server.new(->(_env) {}, fibers: "3") }
  end
end
