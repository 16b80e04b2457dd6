# frozen_string_literal: true

# lib/rondo/fibers/offload.rb: Rondo.offload, blocks on other threads.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"

class OffloadTest < Minitest::Test
  def test_values_and_errors
    assert_equal 3, Rondo.offload { 1 + 2 }
    error = assert_raises(ArgumentError) { Rondo.offload { raise ArgumentError, "there" } }
    assert_equal "there", error.message
    refute_equal Thread.current, Rondo.offload { Thread.current }
  end

  def test_other_fibers_go_on
    gate = Queue.new
    order = []
    Rondo.fibers do |all|
      all.start { order << Rondo.offload { gate.pop } }
      all.start do
        order << :other
        gate << :offloaded
      end
    end
    assert_equal %i[other offloaded], order
  end

  def test_more_blocks_than_threads
    most = Rondo::Offload::THREADS
    threads = Rondo.fibers { |all| all.map(1..(most * 5)) { Rondo.offload { Thread.current } } }
    assert_operator threads.uniq.size, :<=, most
  end

  def test_blocks_that_offload_others
    many = Rondo::Offload::THREADS * 2
    values = Rondo.fibers { |all| all.map(1..many) { |n| Rondo.offload { Rondo.offload { n } } } }
    assert_equal (1..many).to_a, values
  end

  def test_a_block_that_ends_its_thread
    (Rondo::Offload::THREADS + 1).times { assert_nil Rondo.offload { Thread.exit } }
    assert_equal 1, Rondo.offload { 1 }
  end

  def test_a_forked_child_has_threads_of_its_own
    Rondo.offload { 1 }
    pid = fork { exit!(Rondo.offload { 5 }) }
    assert_equal 5, Process.wait2(pid)[1].exitstatus
  end
end
