# frozen_string_literal: true

# Tasks and timers of servers as processes: the examples of docs/TASKS.md, workers and their replacements, the end.
# SPDX-License-Identifier: MIT

require_relative "control/control_case"

class TasksRunTest < ControlCase
  EXAMPLES = File.read(File.join(ROOT, "docs/TASKS.md")).scan(/^```ruby\n(.*?)^```$/m).flatten

  def test_the_examples
    application, reminder, = EXAMPLES
    write "config.ru", "#{application.gsub("60_000", "50")}#{reminder}warn reminder.over?\n"
    server = start
    server.wait_for_log(/^true$/)
    ["soon", "in one and a half seconds", "each minute\n.*each minute", "three times\n.*three times\n.*three times",
     "nothing else waits"].each { |line| server.wait_for_log(/^#{line}$/m) }
    assert_equal "hello", get(server).body
    server.stop
    assert_includes server.log, "Goodbye!"
    assert_equal 3, server.log.scan("three times").size
    refute_includes server.log, "still there?"
  end

  # What a worker begins, the one that takes its place begins, too.
  def test_each_worker_and_each_replacement
    write "config.ru", <<~RUBY
      module Report; end
      Rondo.run { warn "task \#{Process.pid}" }
      Rondo.run_every(10, 2) { warn "timer \#{Process.pid}" }
      Rondo.run_every(60_000) { exit!(1) }
      #{HELLO}
    RUBY
    write "config/rondo.rb", EXAMPLES.last
    server = start("-w", "2")
    %w[task timer].zip([2, 4]) { |word, count| server.wait_for_log(/(?:^#{word} \d+$.*){#{count}}/m) }
    Process.kill("KILL", pids(server, "task").first)
    %w[task timer].zip([3, 6]) { |word, count| server.wait_for_log(/(?:^#{word} \d+$.*){#{count}}/m) }
    assert_equal 3, pids(server, "task").uniq.size
    assert_equal pids(server, "task").to_h { |pid| [pid, 2] }, pids(server, "timer").tally
    server.stop
    assert_equal 6, pids(server, "timer").size
  end

  def test_a_task_that_does_not_end
    write "config.ru", <<~RUBY
      3.times { Rondo.run { warn "began"; sleep } }
      #{HELLO}
    RUBY
    write "config/rondo.rb", "threads 1, 2\ndrain_timeout 0.1\n"
    server = start
    server.wait_for_log(/^began$/)
    assert_equal "hello", get(server).body
    server.stop
    assert_match(/^- Waiting for 3 tasks, at most 0\.1 s;/, server.log)
    assert_match(/^- Ended while the application was still working on a task \(1 task\)$/, server.log)
    assert_match(/^Dropped 2 tasks: the server stopped before their turn came$/, server.log)
  end

  # The watch thread puts due timers into the line. However often a timer was due meanwhile, it stands there once.
  def test_timers_behind_stuck_ruby
    server = stuck_with_timers
    before = in_line(server)
    late = eventually("a second of lateness") { lateness_ms(now = numbers(server)) >= 1000 && now }
    assert_equal before.values_at("tasks", "timers"), late.values_at("tasks", "timers")
    assert_equal [2, 1], late.values_at("tasks_waiting", "tasks_running")
    open_gate
    server.wait_for_log(/^once$/)
    eventually("many ticks") { server.log.scan(/^tick /).size > 60 }
    server.stop
    assert_in_step server.log.scan(/^tick ([\d.]+)$/).flatten.map(&:to_f)
    assert_equal 1, server.log.scan(/^once$/).size, server.log
  end

  private

  # Missed calls are not made up for: a hundred would come at once. A call comes no sooner than ten milliseconds after
  # the turn that began the one before, which may have said so late.
  def assert_in_step(ticks)
    gaps = ticks.each_cons(2).map { |one, another| another - one }
    after = ticks.drop(gaps.index(gaps.max) + 1)
    assert_operator after.last - after.first, :>=, 10 * (after.size - 1) / 2
  end

  def stuck_with_timers
    File.mkfifo(File.join(@folder, "gate"))
    write "config.ru", <<~RUBY
      #{STUCK}
      def now_ms = Process.clock_gettime(Process::CLOCK_MONOTONIC, :float_millisecond)
      Rondo.run_every(10) { warn "tick \#{now_ms}" }
      Rondo.run do
        Rondo.run_after(10) { warn "once" }
        warn "stuck began"
        READ.call(GATE.fileno, Fiddle::Pointer.malloc(1), 1)
      end
    RUBY
    controlled("-t", "2:2").tap { |server| server.wait_for_log(/stuck began/) }
  end

  def numbers(server)
    @stats = JSON.parse(control(server, "/stats").body)
    @stats.fetch("rondo")
  end

  def in_line(server)
    eventually("both in line") { (now = numbers(server))["tasks_waiting"] == 2 && now }
  end

  def lateness_ms(numbers)
    @stats.fetch("time_ms") - numbers.fetch("oldest_task_ms")
  end

  def open_gate
    File.open(File.join(@folder, "gate"), "r+") { |gate| gate.write("..") }
  end

  def pids(server, word)
    server.log.scan(/^#{word} (\d+)$/).flatten.map(&:to_i)
  end
end
