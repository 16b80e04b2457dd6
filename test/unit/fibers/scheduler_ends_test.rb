# frozen_string_literal: true

# Rondo::Scheduler (ext/rondo/fibers): ends that come at a bad time, wrong threads, forked children, odd descriptors.
# SPDX-License-Identifier: MIT

require "support/fibers_case"
require "io/wait"
require "socket"
require "tempfile"
require "timeout"

class SchedulerEndsTest < FibersCase
  def pidfds
    Dir.glob("/proc/self/fd/*").count { |fd| File.symlink?(fd) && File.readlink(fd).include?("pidfd") }
  end

  def kill_while_it_waits(child)
    waiting = Queue.new
    thread = Thread.new do
      Fiber.set_scheduler(Rondo::Scheduler.new)
      Fiber.schedule { Process.wait(child) }
      waiting << true
      Fiber.scheduler.run
    end
    waiting.pop
    assert_operator pidfds, :>, 0
    thread.kill.join
  end

  # ---- the end of the thread ----

  # Ruby asks it before it closes it. That overwrites what the block has left on the stack.
  class Asked < Rondo::Scheduler
    def respond_to?(*) = super
  end

  # Ruby 3.1 does not mark what the block has returned while the fibers run on.
  def test_the_value_of_a_thread_is_there_when_its_fibers_have_ended
    values = ObjectSpace::WeakMap.new
    left = nil
    thread = Thread.new do
      Fiber.set_scheduler(Asked.new)
      Fiber.schedule do
        sleep 0 # meanwhile the block of the thread returns
        Thread.new { GC.start }.join
        left = values.size
      end
      Object.new.tap { |value| values[value] = true }
    end
    thread.join
    assert_equal 1, left
    assert_equal values.keys, [thread.value]
  end

  # Its methods are looked up for the first time then.
  def test_the_value_of_a_thread_with_a_scheduler_of_an_own_class
    values = ObjectSpace::WeakMap.new
    own = Class.new(Rondo::Scheduler)
    thread = Thread.new do
      Fiber.set_scheduler(own.new)
      Object.new.tap do |value|
        values[value] = true
        GC.stress = true
      end
    end
    thread.join
    GC.stress = false
    assert_equal values.keys, [thread.value]
  ensure
    GC.stress = false
  end

  # ---- limits of time ----

  def spend(seconds)
    ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
  end

  def test_two_limits_that_are_due_at_once_both_count
    seen = []
    run_fibers do
      Fiber.schedule do
        Timeout.timeout(0.002, ArgumentError) do
          Timeout.timeout(0.003, IndexError) { (spend 0.01) || sleep }
        rescue IndexError
          seen << :inner
          sleep
        end
      rescue ArgumentError
        seen << :outer
      end
    end
    assert_equal :outer, seen.last
  end

  # What was unlocked for one fiber alone would be lost with it.
  def test_a_limit_does_not_take_a_mutex_from_those_behind
    mutex = Mutex.new
    seen = []
    run_fibers do
      Fiber.schedule { mutex.synchronize { (sleep 0.001) && spend(0.02) } }
      Fiber.schedule do
        Timeout.timeout(0.005) { mutex.synchronize { seen << :first } }
      rescue Timeout::Error
        seen << :late
      end
      Fiber.schedule { mutex.synchronize { seen << :second } }
    end
    assert_equal %i[first second], seen
  end

  def test_a_limit_counts_for_one_that_starts_others
    seen = []
    run_fibers do
      Fiber.schedule do
        Timeout.timeout(0.001) { loop { Fiber.schedule { sleep 0.001 } && sleep(0) } }
      rescue Timeout::Error
        seen << :over
      end
    end
    assert_equal [:over], seen
  end

  def test_a_limit_of_a_fiber_that_was_thrown_away
    seen = []
    run_fibers do
      inner = Fiber.new(blocking: false) { Timeout.timeout(0.001) { Fiber.yield } }
      Fiber.schedule { inner.resume && nil }
      Fiber.schedule { seen << (sleep(0.005) && :ended) }
    end
    assert_equal [:ended], seen
  end

  # ---- closing ----

  def test_closing_in_a_fiber_is_refused
    seen = []
    run_fibers do |scheduler|
      Fiber.schedule do
        sleep 0
        assert_raises(Rondo::Error) { scheduler.close }
        seen << :goes_on
      end
      Fiber.schedule { seen << (sleep(0.001) && :other) }
      scheduler.run
    end
    assert_equal %i[goes_on other], seen
  end

  def test_a_fiber_that_waited_in_a_closed_scheduler_gets_an_error
    ours, theirs = UNIXSocket.pair
    run_fibers do |scheduler|
      waiting = Fiber.schedule { ours.wait_readable }
      limited = Fiber.schedule { Timeout.timeout(60) { sleep } }
      Fiber.schedule { (sleep 0) && raise("the end") }
      assert_raises(RuntimeError) { scheduler.close }
      assert_raises(ArgumentError) { waiting.raise(ArgumentError) }
      assert_raises(Rondo::Error) { limited.transfer }
      theirs.close
    end
  end

  def test_in_a_rescue_clause_fibers_run_to_their_end
    seen = []
    run_fibers do
      raise "before"
    rescue RuntimeError
      Fiber.set_scheduler(nil)
      Fiber.set_scheduler(Rondo::Scheduler.new)
      Fiber.schedule { seen << (sleep(0.001) && :ended) }
      Fiber.set_scheduler(nil)
    end
    assert_equal [:ended], seen
  end

  # One fiber raises something else when all are told to end. What the other one was told is not kept.
  def test_a_fiber_that_was_told_to_end_when_another_one_raised
    run_fibers do |scheduler|
      Fiber.schedule do
        sleep
      rescue Rondo::Scheduler::Stopped
        raise "other"
      end
      told = Fiber.schedule { sleep }
      assert_raises(ArgumentError) do
        raise ArgumentError
      ensure # all are told to end, because an exception is on its way
        assert_raises(RuntimeError) { scheduler.close }
      end
      assert_raises(Rondo::Error) { told.transfer }
    end
  end

  def test_a_scheduler_of_another_thread
    run_fibers do |scheduler|
      Fiber.schedule { sleep 0.001 }
      Thread.new do
        [-> { scheduler.run }, -> { scheduler.close }, -> { scheduler.kernel_sleep(0) }].each do |use|
          assert_match(/another thread/, assert_raises(Rondo::Error, &use).message)
        end
      end.value
    end
  end

  # Ruby throws the fibers of such a thread away, without their `ensure` clauses. It may find some of them later.
  def test_threads_that_are_killed_leave_their_descriptors_to_the_collector
    child = spawn("sleep #{PATIENCE}")
    5.times { kill_while_it_waits(child) }
    wait_until { GC.start || pidfds < 5 }
  ensure
    Process.kill("KILL", child)
    Process.wait(child)
  end

  # ---- forked children ----

  def child_status
    pid = fork do
      yield
      exit!(9)
    end
    Process.wait2(pid)[1].exitstatus
  end

  # The others are the parent's: what they do must not be done twice, and what they wait for not be taken from them.
  def test_a_child_runs_no_fiber_of_its_parent
    reader, writer = IO.pipe
    statuses = []
    run_fibers do |scheduler|
      Fiber.schedule { (sleep 0.001) && writer.write("x") }
      statuses << child_status { exit!(3) if scheduler.run.nil? }
      Fiber.schedule do
        sleep 0.001
        pid = fork
        statuses << Process.wait2(pid)[1].exitstatus if pid
      end
    end
    writer.close
    assert_equal ["x", [3, 0]], [reader.read, statuses]
  end

  def test_a_child_that_asks_for_more
    ours, theirs = UNIXSocket.pair
    status = nil
    run_fibers do
      Fiber.schedule do
        status = child_status do
          select([ours], nil, nil, 0)
          begin
            Fiber.schedule { nil }
          rescue Rondo::Error, RuntimeError
            theirs << "x"
            exit!(4) if select([ours])
          end
        end
      end
    end
    assert_equal 4, status
  end

  # ---- a wait in a wait ----

  # A handler of a signal runs where the thread waits. If that is a fiber of the thread's own, the same fiber waits
  # twice. In a child, because signals are for its main thread.
  def test_a_signal_handler_that_waits
    status = child_status do
      Thread.new { (sleep PATIENCE) && exit!(1) }
      Fiber.set_scheduler(scheduler = Rondo::Scheduler.new)
      queue = Queue.new
      trap("USR2") { Thread.new { (Thread.pass until scheduler.waiting == 2) || (queue << 7) }.join }
      Thread.new do
        Thread.pass until scheduler.waiting == 1
        Process.kill("USR2", Process.pid)
      end
      Fiber.new { exit!(queue.pop) }.resume
    end
    assert_equal 7, status
  end

  # ---- descriptors ----

  def test_both_directions_of_a_descriptor
    ours, theirs = UNIXSocket.pair
    ours.write_nonblock("x" * 4096) while ours.wait_writable(0)
    seen = []
    run_fibers do
      Fiber.schedule { seen << (ours.wait_readable && :read) }
      Fiber.schedule { seen << (ours.wait_writable && :written) }
      Fiber.schedule do
        theirs << "y"
        sleep 0.001
        theirs.readpartial(1 << 20) while theirs.wait_readable(0)
      end
    end
    assert_equal %i[read written], seen
  end

  def test_what_is_closed_while_a_copy_of_it_is_open
    ours, theirs = UNIXSocket.pair
    copy = ours.dup
    seen = []
    run_fibers do
      Fiber.schedule { seen << (copy.wait_readable && :copy) }
      first = Fiber.schedule { ours.wait_readable rescue seen << :raised }
      Fiber.schedule do
        first.raise("enough")
        ours.close
        theirs << "x"
      end
    end
    assert_equal %i[raised copy], seen
  end

  def test_descriptors_above_1024
    wanted = 1100
    most = Process.getrlimit(:NOFILE)[0]
    skip "#{wanted + 100} descriptors: the limit is #{most}" if most < wanted + 100
    File.open(File::NULL) do |null|
      fillers = Array.new(wanted) { null.dup }
      ours, theirs = UNIXSocket.pair
      assert_operator ours.fileno, :>, 1024
      texts = []
      run_fibers do
        Fiber.schedule { texts << ours.gets << (ours.wait_readable && ours.gets) }
        Fiber.schedule { 2.times { (sleep 0.001) && (theirs << "text\n") } }
      end
      assert_equal %W[text\n text\n], texts
    ensure
      [*fillers, ours, theirs].each { |io| io&.close }
    end
  end

  def test_waiting_for_a_file
    Tempfile.create do |file|
      run_fibers { Fiber.schedule { assert file.wait_readable && file.wait_writable(60) } }
    end
  end

  def test_a_closed_descriptor_raises
    ours, = UNIXSocket.pair
    ours.close
    run_fibers { Fiber.schedule { assert_raises(IOError) { ours.wait_readable } } }
  end
end
