# frozen_string_literal: true

# Limits of workers, their jitter, and which workers have reached them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "minitest/mock"
require "rondo/cluster/lifetimes"
require "rondo/cluster/worker_handle"
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

  # ---- how long it may take to end ----

  # A socket that takes every message.
  Listening = Class.new { def notify(*, **) = true }

  # Yields a worker that serves, and sets the clock to the seconds that the block passes on.
  def at_work(pid: 1)
    now = 1000.0
    Rondo::ProcessLoop.stub(:now, -> { now }) do
      worker = Rondo::WorkerHandle.new(index: 0, seat: 0, mold: nil, socket: Listening.new, pid: pid, state: :ready)
      yield worker, ->(seconds) { now = 1000.0 + seconds }
    end
  end

  def test_signs_of_life_and_further_signals_give_a_worker_that_stops_no_more_time
    given = lifetimes(worker_shutdown_timeout: 30)
    at_work do |worker, clock|
      worker.stop
      [10, 20, 32].each do |seconds|
        clock.call(seconds)
        assert_nil given.overdue(worker)
        worker.check_in
        worker.stop
      end
      clock.call(33)
      assert_equal 32, given.overdue(worker)
      assert_equal "it did not end within 32 s after it was told to stop", given.overdue_in_words(worker, 32)
    end
  end

  def test_a_worker_that_shall_stop_at_once_has_a_moment
    given = lifetimes(worker_shutdown_timeout: 600)
    at_work do |worker, clock|
      worker.stop
      [100, 101, 103].each do |seconds|
        clock.call(seconds)
        worker.check_in
        worker.stop(force: true)
        assert_nil given.overdue(worker)
      end
      clock.call(104)
      assert_equal 3, given.overdue(worker)
      assert_equal "it did not end within 3 s after it was told to stop at once", given.overdue_in_words(worker, 3)
    end
  end

  def test_signs_of_life_of_others_count_for_a_worker_that_is_not_forked_yet
    given = lifetimes(worker_shutdown_timeout: 30)
    at_work(pid: nil) do |worker, clock|
      worker.stop
      clock.call(20)
      worker.check_in
      clock.call(40)
      assert_nil given.overdue(worker)
    end
  end

  def test_signs_of_life_keep_a_worker_that_serves
    given = lifetimes(worker_timeout: 60)
    at_work do |worker, clock|
      clock.call(59)
      worker.check_in
      clock.call(118)
      assert_nil given.overdue(worker)
      clock.call(120)
      assert_equal 60, given.overdue(worker)
    end
  end

  def test_memory
    assert_operator Rondo::Lifetimes.memory(Process.pid), :>, 1 << 20
    assert_operator Rondo::Lifetimes.memory(Process.pid, :pss), :>, 1 << 20
    assert_equal 0, Rondo::Lifetimes.memory(4_000_000)
  end
end
