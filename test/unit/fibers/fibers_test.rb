# frozen_string_literal: true

# lib/rondo/fibers/fibers.rb: Rondo.fibers, blocks that wait at the same time.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "socket"

class FibersTest < Minitest::Test
  def test_values_in_the_order_of_the_elements
    assert_equal([6, 4, 2], Rondo.fibers { |all| all.map([3, 2, 1]) { |n| (sleep n * 0.001) && (n * 2) } })
    assert_nil Fiber.scheduler
  end

  def test_no_more_than_the_limit_run
    most = running = 0
    gate = Queue.new
    others = Thread.new do
      Thread.pass until running >= 3
      20.times { gate << true }
    end
    Rondo.fibers(limit: 3) do |all|
      20.times do
        all.start do
          most = [most, running += 1].max
          gate.pop
          running -= 1
        end
      end
    end
    others.join
    assert_equal [3, 0], [most, running]
  end

  def test_who_can_go_on_does_so_before_more_are_started
    most = running = 0
    Rondo.fibers(limit: 100) do |all|
      100.times do
        all.start do
          most = [most, running += 1].max
          sleep 0
          running -= 1
        end
      end
    end
    assert_operator most, :<=, 2
  end

  def test_an_error_comes_when_all_have_ended
    ended = []
    error = assert_raises(ArgumentError) do
      Rondo.fibers do |all|
        all.start { raise ArgumentError, "first" }
        all.start { ended << (sleep(0.001) && 1) }
      end
    end
    assert_equal ["first", [1]], [error.message, ended]
  end

  def test_an_error_that_was_taken_does_not_come_again
    taken = Rondo.fibers do |all|
      all.start { raise ArgumentError, "first" }.value
    rescue ArgumentError => e
      e.message
    end
    assert_equal "first", taken
  end

  def test_blocks_start_others
    seen = []
    Rondo.fibers { |all| all.start { (sleep 0) && all.start { seen << (sleep(0.001) && :inner) } } }
    assert_equal [:inner], seen
  end

  def test_in_a_fiber_that_has_a_scheduler
    result = Thread.new do
      Fiber.set_scheduler(Rondo::Scheduler.new)
      inner = []
      Fiber.schedule { inner << Rondo.fibers { |all| all.map([1, 2]) { |n| (sleep 0) && n } } }
      inner << Rondo.fibers { |all| all.start { :own }.value }
      Fiber.scheduler.run
      inner
    end.value
    assert_equal [:own, [1, 2]], result.sort_by(&:to_s).reverse
  end

  def test_in_a_rescue_clause
    raise "before"
  rescue RuntimeError
    assert_equal([1], Rondo.fibers { |all| all.map([1]) { |n| (sleep 0.001) && n } })
  end

  # An error that is being handled is not an error of the block.
  def test_an_error_in_a_rescue_clause_of_a_fiber
    error = assert_raises(ArgumentError) do
      Rondo.fibers do
        raise "before"
      rescue RuntimeError
        Rondo.fibers { |all| all.start { (sleep 0.001) && raise(ArgumentError, "meanwhile") } }
      end
    end
    assert_equal "meanwhile", error.message
  end

  def test_an_error_of_the_block_goes_first
    error = assert_raises(IndexError) do
      Rondo.fibers do |all|
        all.start { (sleep 0.001) && raise(ArgumentError, "meanwhile") }
        raise IndexError, "first"
      end
    end
    assert_equal "first", error.message
  end

  # As if the system had no room for one fiber more.
  class NoRoom < Rondo::Scheduler
    attr_accessor :left

    def fiber(...)
      raise FiberError, "can't alloc machine stack to fiber" if (self.left -= 1).negative?

      super
    end
  end

  def test_a_fiber_that_cannot_be_made
    ended = []
    Thread.new do
      Fiber.set_scheduler(scheduler = NoRoom.new)
      scheduler.left = 3
      error = nil
      Fiber.schedule do
        Rondo.fibers { |all| 3.times { |n| all.start { ended << (sleep(0) && n) } } }
      rescue FiberError => e
        error = e
      end
      scheduler.run
      ended << error.class
    end.value
    assert_equal [0, 1, FiberError], ended
  end

  # In a process that soon has no memory for one more stack.
  WITHOUT_STACKS = <<~RUBY
    most = Process.getrlimit(:AS)
    begun = started = failed = 0
    Thread.new do
      Fiber.set_scheduler(Rondo::Scheduler.new)
      gate = Queue.new
      Fiber.schedule do
        Process.setrlimit(:AS, (File.read("/proc/self/statm").to_i * 4096) + 20_000_000, most[1])
        while failed < 3
          begin
            Fiber.schedule { (begun += 1) && gate.pop }
            started += 1
          rescue FiberError
            failed += 1
          end
        end
        Process.setrlimit(:AS, *most)
        gate.close
      end
    end.join
    puts begun - started
  RUBY

  def test_a_fiber_without_a_stack_does_not_begin_later
    paths = $LOAD_PATH.flat_map { |folder| ["-I", folder] }
    assert_equal "0\n", IO.popen([RbConfig.ruby, *paths, "-rrondo", "-e", WITHOUT_STACKS], &:read)
  end

  def test_limits_that_are_none
    [0, -1, nil, 1.5].each { |limit| assert_raises(ArgumentError) { Rondo.fibers(limit: limit) { nil } } }
  end
end
