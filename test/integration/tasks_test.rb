# frozen_string_literal: true

# Tasks and timers of servers as processes: the examples of docs/TASKS.md, workers and their replacements, the end.
# SPDX-License-Identifier: MIT

require_relative "shell_case"

class TasksRunTest < ShellCase
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
    server.wait_for_log(/(?:^timer \d+$.*){4}/m)
    Process.kill("KILL", pids(server, "task").first)
    server.wait_for_log(/(?:^timer \d+$.*){6}/m)
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

  private

  def pids(server, word)
    server.log.scan(/^#{word} (\d+)$/).flatten.map(&:to_i)
  end
end
