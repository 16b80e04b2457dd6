# frozen_string_literal: true

# lib/rondo/tasks.rb and ext/rondo/app/rb_task.c: tasks and timers of a server of this process.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo"
require "stringio"
require "timeout"
require "support/waiting"

class TasksTest < Minitest::Test
  include Waiting

  def setup
    @done = Queue.new
    @log = StringIO.new
  end

  # Serves while the block runs.
  # @yieldparam server [Rondo::Server]
  def serve(**settings)
    server = Rondo::Server.new(->(_env) { [200, {}, []] }, environment: "test",
                                                           log: Rondo::Logger.new(io: @log), **settings)
    server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    wait_until { server.stats[:threads].positive? }
    yield server
  ensure
    server&.stop
    assert thread.join(PATIENCE), "the server stops" if thread
  end

  def take
    Timeout.timeout(PATIENCE) { @done.pop }
  end

  def now_ms
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
  end

  # In a process of its own, which overwrites memory that is freed.
  # @return [String] what it printed
  def run_script(text)
    words = [RbConfig.ruby, "-I#{File.expand_path("../../lib", __dir__)}", "-rrondo", "-e", text]
    Open3.capture2({ "MALLOC_PERTURB_" => "165" }, *words).first
  end

  # The server's objects are younger than the task, so a minor collection finds them only by a write barrier. Ruby looks
  # for those that are missing, and ends the process.
  OLD_TASK = <<~RUBY
    begun = Queue.new
    task = Rondo.run_after(60_000) { begun }
    Rondo.run { begun << true }
    5.times { GC.start }
    GC.disable
    server = Rondo::Server.new(->(_env) { [200, {}, []] }, environment: "test")
    server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    begun.pop
    GC.verify_internal_consistency
    server.stop
    thread.join
    puts "consistent"
  RUBY

  def test_a_task_that_is_older_than_its_server
    assert_equal "consistent\n", run_script(OLD_TASK)
  end

  # The server waits for its block for a second, and forgets the task.
  TASK_THAT_GOES_ON = <<~RUBY
    begun, go_on, ended = Array.new(3) { Queue.new }
    ask = lambda do
      Rondo.run do
        begun << true
        sleep
      ensure
        go_on.pop
        ended << Thread.current
      end
      nil
    end
    ask.call
    server = Rondo::Server.new(->(_env) { [200, {}, []] }, environment: "test", log: Rondo::Logger.new(io: $stderr))
    server.listen("tcp://127.0.0.1:0")
    main = Thread.current
    Thread.new { begun.pop && main.raise(Interrupt, "") }
    begin
      server.run
    rescue Interrupt
      spin = ->(left) { left.zero? ? GC.start : spin.call(left - 1) }
      3.times { spin.call(500) }
      go_on << true
      ended.pop.join
      puts "alive"
    end
  RUBY

  def test_a_task_that_goes_on_when_its_server_has_ended
    assert_equal "alive\n", run_script(TASK_THAT_GOES_ON)
  end

  def test_tasks_run_on_application_threads_in_order
    serve(max_threads: 1) do
      100.times { |n| Rondo.run { @done << [n, Thread.current.name] } }
      assert_equal((0...100).map { |n| [n, "rondo 1"] }, Array.new(100) { take })
    end
  end

  def test_defer_is_run
    serve do
      Rondo.defer { @done << :run }
      assert_equal :run, take
    end
  end

  def test_a_task_may_ask_for_another
    serve(max_threads: 1) do
      Rondo.run do
        Rondo.run { @done << :inner }
        @done << :outer
      end
      assert_equal %i[outer inner], [take, take]
    end
  end

  def test_what_was_asked_for_before_begins_with_the_server
    Rondo.run { @done << :run }
    Rondo.run_after(1) { @done << :after }
    cancelled = Rondo.run { @done << :cancelled }
    assert cancelled.cancel
    refute cancelled.cancel
    refute_predicate Rondo.run { @done << :last }, :over?
    serve { assert_equal %i[after last run], [take, take, take].sort }
    serve { |server| assert_equal 0, server.stats[:tasks], "they have begun" }
  end

  def test_a_timer_is_never_early
    serve do
      start = now_ms
      Rondo.run_after(20.5) { @done << now_ms }
      assert_operator take - start, :>=, 20.5
    end
  end

  def test_no_time_at_all
    serve do
      Rondo.run_after(0) { @done << 1 }
      assert_equal 1, take
    end
  end

  def test_a_timer_that_repeats
    serve do |server|
      task = Rondo.run_every(1, 3) { @done << 1 }
      3.times { take }
      wait_until { task.over? }
      assert_equal 0, server.stats[:timers]
      assert_equal 3, server.stats[:tasks]
    end
  end

  def test_a_timer_never_runs_beside_itself
    serve(max_threads: 4) do
      inside = 0
      task = Rondo.run_every(1) do
        inside += 1
        @done << inside
        sleep 0.005
        inside -= 1
      end
      assert_equal [1] * 5, Array.new(5) { take }
      assert task.cancel
      wait_until { task.over? }
    end
  end

  def test_cancel
    serve do |server|
      timer = Rondo.run_after(60_000) { @done << :timer }
      assert_equal 1, server.stats[:timers]
      assert timer.cancel
      assert_predicate timer, :over?
      refute timer.cancel
      assert_equal 0, server.stats[:timers]
      own = Rondo.run_every(1) { @done << own.cancel }
      assert take
      wait_until { own.over? }
    end
  end

  def test_on_idle_comes_after_what_waits
    serve(max_threads: 1) do
      Rondo.run do
        Rondo.on_idle { @done << :idle }
        3.times { |n| Rondo.run { @done << n } }
      end
      assert_equal [0, 1, 2, :idle], Array.new(4) { take }
    end
  end

  def test_exceptions_are_logged_with_their_place_and_the_timer_goes_on
    serve do |server|
      count = 0
      Rondo.run_every(1, 3) do
        @done << (count += 1)
        raise "broken #{count}"
      end
      assert_equal [1, 2, 3], Array.new(3) { take }
      wait_until { server.stats[:tasks_failed] == 3 }
    end
    place = "#{Regexp.escape(__FILE__)}:#{__LINE__ - 7}"
    assert_match(/^Task of #{place}: RuntimeError: broken 1\n    #{Regexp.escape(__FILE__)}:/, @log.string)
    assert_match(/RuntimeError: broken 3/, @log.string)
  end

  def test_blocks_that_end_in_other_ways
    serve(max_threads: 1) do |server|
      blocks = [-> { exit }, proc { throw :nobody }, ->(argument) { argument }, proc { break }]
      blocks.each { |block| Rondo.run(&block) }
      Rondo.run { Thread.exit }
      Rondo.run { @done << :next }
      assert_equal :next, take
      wait_until { server.stats[:tasks_running].zero? }
      assert_equal 5, server.stats[:tasks_failed]
    end
    %w[SystemExit UncaughtThrowError ArgumentError LocalJumpError].each { |name| assert_match(/: #{name}: /, @log.string) }
  end

  def test_a_block_that_is_killed_leaves_its_timer
    serve(max_threads: 1) do
      Rondo.run_every(1, 2) do
        @done << 1
        Thread.current.kill
      end
      assert_equal [1, 1], [take, take]
    end
  end

  def test_a_place_is_left_for_requests
    gate = Queue.new
    serve(max_threads: 3) do |server|
      5.times do
        Rondo.run do
          @done << 1
          gate.pop
        end
      end
      2.times { take }
      wait_until { server.stats[:tasks_running] == 2 }
      assert_equal 3, server.stats[:tasks_waiting]
      assert_equal 2, server.stats[:busy]
      5.times { gate << 1 }
      3.times { take }
    end
  end

  def test_max_tasks
    gate = Queue.new
    serve(max_threads: 1, max_tasks: 3) do
      Rondo.run do
        @done << 1
        gate.pop
      end
      take
      Rondo.run { @done << 2 }
      timer = Rondo.run_after(60_000) { @done << 3 }
      error = assert_raises(Rondo::TaskLimitError) { Rondo.run { @done << 4 } }
      assert_equal "too many tasks wait and timers are set: max_tasks is 3", error.message
      timer.cancel
      Rondo.on_idle { @done << 5 }
      gate << 1
      assert_equal [2, 5], [take, take]
    end
  end

  def test_a_stop_runs_what_waits_and_ends_timers
    gate = Queue.new
    timer = nil
    serve(max_threads: 1) do |server|
      Rondo.run do
        @done << 0
        gate.pop
      end
      take
      3.times { |n| Rondo.run { @done << n } }
      timer = Rondo.run_every(60_000) { @done << :timer }
      server.stop
      wait_until { timer.over? }
      Rondo.run { @done << 3 }
      assert_predicate Rondo.run_after(1) { @done << :timer }, :over?
      gate << 1
      assert_equal [0, 1, 2, 3], Array.new(4) { take }
    end
    assert_empty @log.string[/Dropped.*/].to_s
  end

  def test_a_stop_counts_what_it_gives_up
    gate = Queue.new
    serve(max_threads: 1, drain_timeout_ms: 10) do |server|
      Rondo.run do
        @done << 0
        gate.pop
      end
      take
      3.times { Rondo.run { @done << 1 } }
      server.stop
      wait_until { server.stats[:tasks_dropped] == 3 }
      gate << 1
    end
    assert_match(/^Dropped 3 tasks: the server stopped before their turn came$/, @log.string)
    assert_empty @done
  end

  def test_arguments
    assert_equal "a task needs a block", assert_raises(ArgumentError) { Rondo.run }.message
    assert_raises(ArgumentError) { Rondo.on_idle }
    assert_raises(ArgumentError) { Rondo.run_after(1) }
    assert_raises(ArgumentError) { Rondo.run_every(1) }
    [nil, "1", Complex(1, 1)].each do |value|
      assert_raises(TypeError, value.inspect) { Rondo.run_after(value) { flunk } }
      assert_raises(TypeError, value.inspect) { Rondo.run_every(1, value) { flunk } }
    end
    [-1, -0.5, Float::NAN, Float::INFINITY, 10**30, Rondo::Task::MAX_MS + 1].each do |value|
      assert_raises(ArgumentError, value.inspect) { Rondo.run_after(value) { flunk } }
      assert_raises(ArgumentError, value.inspect) { Rondo.run_every(value) { flunk } }
    end
    [0, 0.999].each { |value| assert_raises(ArgumentError, value.inspect) { Rondo.run_every(value) { flunk } } }
    [-1, 1 << 32].each { |value| assert_raises(ArgumentError, value.inspect) { Rondo.run_every(1, value) { flunk } } }
    assert Rondo.run_after(Rondo::Task::MAX_MS) { flunk }.cancel
    assert_raises(TypeError) { Rondo::Task.new }
    assert_raises(NoMethodError) { Rondo::Task.begin(0, 1, false, -> {}) }
  end

  def test_a_fork_has_no_tasks_of_its_parent
    serve do
      timer = Rondo.run_every(1) { @done << Process.pid }
      take
      reader, writer = IO.pipe
      pid = fork do
        timer.cancel
        writer.write([timer.over?, timer.cancel, Rondo.run { writer.write("never") }.over?].inspect)
        exit!(0)
      end
      writer.close
      Process.wait(pid)
      assert_equal "[true, false, false]", reader.read
      @done.clear
      assert_equal Process.pid, take
      assert timer.cancel
    end
  end

  def test_a_trap_may_ask_for_tasks
    serve do
      before = trap("USR2") do
        Rondo.run { @done << :run }
        Rondo.run_after(1) { @done << :after }
      end
      Process.kill("USR2", Process.pid)
      assert_equal %i[after run], [take, take].sort
    ensure
      trap("USR2", before || "DEFAULT")
    end
  end

  def test_tasks_belong_to_the_first_of_two_servers
    serve do |first|
      serve do |second|
        Rondo.run { @done << 1 }
        timer = Rondo.run_every(60_000) { @done << 2 }
        assert_equal 1, take
        assert_equal [[1, 1], [0, 0]], [first, second].map { |server| server.stats.values_at(:tasks, :timers) }
        first.stop
        wait_until { timer.over? }
        Rondo.run { @done << 3 }
        assert_equal 3, take
        wait_until { second.stats[:tasks] == 1 }
      end
    end
  end

  def test_tasks_that_nobody_keeps
    serve(max_threads: 1) do
      50.times { |n| Rondo.run_after(n / 10.0) { @done << n } }
      GC.start
      assert_equal (0...50).to_a, Array.new(50) { take }.sort
    end
  end
end
