# frozen_string_literal: true

# Rondo::Scheduler (ext/rondo/fibers, lib/rondo/fibers/scheduler.rb): what waits, what ends a wait, and what is left.
# SPDX-License-Identifier: MIT

require "support/fibers_case"
require "io/wait"
require "socket"
require "timeout"

class SchedulerTest < FibersCase
  def test_a_read_and_a_sleep_wait_together
    order = []
    ours, theirs = UNIXSocket.pair
    run_fibers do
      Fiber.schedule { order << ours.gets << ours.gets }
      Fiber.schedule do
        order << :before
        sleep 0.001
        theirs << "one\n"
        sleep 0.001
        theirs << "two\n"
      end
    end
    assert_equal [:before, "one\n", "two\n"], order
  end

  def test_deadlines_come_in_their_order
    order = []
    unit = ENV["RONDO_TEST_GC"] ? 2 : 0.2 # longer than the others need to begin
    run_fibers do
      [2, 0, 1].each { |units| Fiber.schedule { order << (sleep(units * unit) && units) } }
    end
    assert_equal [0, 1, 2], order
  end

  def test_one_who_starts_others_goes_on_when_these_wait
    order = []
    run_fibers do
      Fiber.schedule do
        Fiber.schedule do
          order << 1
          sleep 0
          order << 4
        end
        order << 2
        Fiber.schedule { order << 3 }
        sleep 0.01
        order << 5
      end
    end
    assert_equal [1, 2, 3, 4, 5], order
  end

  def test_a_fiber_inside_a_fiber_waits_for_both
    result = nil
    run_fibers do
      Fiber.schedule do
        inner = Fiber.new(blocking: false) do
          sleep 0.001
          Fiber.yield :first
          sleep 0.001
          :second
        end
        result = [inner.resume, inner.resume]
      end
    end
    assert_equal %i[first second], result
  end

  def test_a_fiber_of_the_thread_itself_waits
    order = []
    run_fibers do
      Fiber.schedule { order << (sleep(0.001) && :other) }
      Fiber.new(blocking: false) { order << (sleep(0.02) && :own) }.resume
      order << :after
    end
    assert_equal %i[other own after], order
  end

  def test_other_threads_unblock
    queue = Queue.new
    taken = nil
    run_fibers do |scheduler|
      Fiber.schedule { taken = [queue.pop, queue.pop] }
      Thread.new do
        wait_until { scheduler.waiting == 1 }
        queue << 1
        queue << 2
      end
    end
    assert_equal [1, 2], taken
  end

  def test_what_is_raised_where_a_fiber_waits_undoes_the_wait
    ours, theirs = UNIXSocket.pair
    seen = []
    run_fibers do |scheduler|
      reader = Fiber.schedule do
        ours.wait_readable
      rescue RuntimeError => e
        seen << e.message << scheduler.waiting
      end
      other = Fiber.schedule { seen << ours.wait_readable.class }
      Fiber.schedule do
        reader.raise "woken"
        seen << :goes_on << other.alive?
        theirs << "x"
      end
    end
    assert_equal ["woken", 1, :goes_on, true, UNIXSocket], seen
  end

  def test_a_timeout_ends_the_wait_it_is_around
    seen = []
    queue = Queue.new
    run_fibers do
      Fiber.schedule do
        Timeout.timeout(0.001) { queue.pop }
      rescue Timeout::Error
        seen << :queue
      end
      Fiber.schedule do
        Timeout.timeout(60) { seen << (sleep(0.001) && :in_time) }
        Timeout.timeout(0.001) { Fiber.new(blocking: false) { sleep }.resume }
      rescue Timeout::Error
        seen << :inner
      end
    end
    assert_equal %i[in_time inner queue], seen.sort
  end

  def test_pipes_that_block_are_read_without_blocking
    reader, writer = IO.pipe
    reader.nonblock = false if reader.respond_to?(:nonblock=)
    order = []
    run_fibers do
      Fiber.schedule { order << reader.read }
      Fiber.schedule do
        order << :writes
        writer << "text"
        writer.close
      end
    end
    assert_equal [:writes, "text"], order
  end

  def test_a_wait_with_a_limit
    ours, theirs = UNIXSocket.pair
    seen = []
    run_fibers do
      Fiber.schedule { seen << ours.wait_readable(0.001) << theirs.wait_writable(60).equal?(theirs) }
    end
    assert_equal [nil, true], seen
  end

  def test_files_are_always_ready
    run_fibers do
      Fiber.schedule { assert_includes File.read(__FILE__), "always_ready" }
    end
  end

  def test_child_processes
    seen = {}
    run_fibers do
      Fiber.schedule { seen[:system] = system("true") }
      Fiber.schedule { seen[:text] = `echo text` }
      Fiber.schedule { seen[:any] = Process.wait2(spawn("exit 3"))[1].exitstatus }
    end
    assert_equal({ system: true, text: "text\n", any: 3 }, seen)
  end

  def test_names
    seen = []
    run_fibers do
      2.times { Fiber.schedule { seen << Addrinfo.tcp("localhost", 80).ip_port } }
    end
    assert_equal [80, 80], seen
  end

  def test_select
    skip "Ruby #{RUBY_VERSION} does not ask a scheduler for IO.select" if RUBY_VERSION < "3.2"
    ours, theirs = UNIXSocket.pair
    seen = []
    written = []
    run_fibers do
      Fiber.schedule { seen << select([ours], nil, nil, 0.001) << select([ours], [ours]) << select([ours]) }
      Fiber.schedule { written << :writes << (sleep(0.01) && theirs.write("x")) }
    end
    assert_equal [nil, [[], [ours], []], [[ours], [], []]], seen
    assert_equal [:writes, 1], written
  end

  def test_an_error_that_nobody_rescues_reaches_the_thread
    error = assert_raises(RuntimeError) do
      run_fibers { Fiber.schedule { (sleep 0.001) && raise("late") } }
    end
    assert_equal "late", error.message
  end

  def test_an_end_by_an_error_ends_the_fibers
    ended = []
    assert_raises(RuntimeError) do
      run_fibers do
        2.times do |number|
          Fiber.schedule do
            sleep
          ensure
            sleep 0
            ended << number
          end
        end
        raise "the end"
      ensure
        Fiber.set_scheduler(nil) # as Ruby does when the main thread ends
      end
    end
    assert_equal [0, 1], ended
  end

  def test_a_forked_child_goes_on_without_a_scheduler
    reader, writer = IO.pipe
    status = nil
    run_fibers do
      gate = Queue.new
      Fiber.schedule { gate.pop }
      Fiber.schedule do
        pid = fork do
          sleep 0.001
          writer << (Fiber.scheduler.nil? ? "child" : "broken")
          exit!(0) if writer.close.nil?
        end
        status = Process.wait2(pid)[1]
        gate << :ended
      end
    end
    writer.close
    assert_equal "child", reader.read
    assert_predicate status, :success?
  end

  def test_a_forked_child_ends_as_any_other
    status = nil
    run_fibers do
      Fiber.schedule { status = Process.wait2(fork { exit!(0) })[1] }
    end
    assert_predicate status, :success?
  end

  def test_a_closed_scheduler_says_so
    scheduler = Rondo::Scheduler.new
    scheduler.close
    assert_nil scheduler.close
    assert_raises(Rondo::Error) { scheduler.kernel_sleep(1) }
    assert_raises(Rondo::Error) { scheduler.run }
  end

  def test_a_scheduler_that_is_thrown_away_while_fibers_wait
    10.times do
      ours, = UNIXSocket.pair
      thread = Thread.new do
        Fiber.set_scheduler(scheduler = Rondo::Scheduler.new)
        Fiber.schedule { scheduler.timeout_after(60, RuntimeError, "late") { ours.wait_readable } }
        sleep
      end
      wait_until { thread.stop? }
      thread.kill
      assert thread.join(PATIENCE)
    end
    GC.start
  end
end
