# frozen_string_literal: true

# Processes that die, hang or wear out, under load: only the requests inside them are lost, and another process replaces
# them. RONDO_TEST_KILLS is the number of workers that the longest test kills.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterSupervisionTest < ClusterCase
  KILLS = ENV.fetch("RONDO_TEST_KILLS", "3").to_i
  CLIENTS = 4
  # A sign of life each second.
  OFTEN = "worker_check_interval 1\n"

  def test_a_worker_with_a_request_that_hangs_is_replaced
    write "config/rondo.rb", "hard_request_timeout 2\nworker_check_interval 0.1\nworker_shutdown_timeout 1\n"
    server = cluster("-t", "2")
    hanging = TCPSocket.new("127.0.0.1", server.port)
    hanging.write("GET /slow HTTP/1.0\r\n\r\n")
    server.wait_for_log(/^- Replacing (Worker \d \(PID: \d+\)): a request has been in the application for \d+ s$/)
    replaced = server.log[/^- Replacing Worker \d \(PID: (\d+)\)/, 1].to_i
    wait_for_workers(server, 3)
    wait_for_end_of(replaced)
    assert_equal 2, workers(server).size
    assert_equal "200", get(server, "/").code
  ensure
    hanging&.close
  end

  # The core does it, long before the process ends, and does not wait for the end of the drain.
  def test_the_client_of_a_request_that_hangs_is_answered
    write "config/rondo.rb", "hard_request_timeout 2\nworker_check_interval 0.1\n"
    server = cluster("-t", "2")
    hanging = TCPSocket.new("127.0.0.1", server.port)
    hanging.write("GET /slow HTTP/1.0\r\n\r\n")
    assert hanging.wait_readable(PATIENCE), "no answer"
    answer = hanging.read
    assert_match(/\AHTTP\/1\.1 503 .*^retry-after: 1\r$.*\r\n\r\nthe application took too long\n\z/m, answer)
    server.wait_for_log(%r{^GET /slow: no answer for \d+\.\d s \(hard_request_timeout\), given up \(503\); the application is at\n    \S+:\d+:in })
    server.wait_for_log(/^- Replacing Worker \d \(PID: \d+\): a request has been in the application for \d+ s$/)
    wait_for_end_of(server.log[/^- Replacing Worker \d \(PID: (\d+)\)/, 1].to_i)
    refute_match(/Killed|Ended while/, server.log)
    assert_equal "200", get(server, "/").code
  ensure
    hanging&.close
  end

  # ---- death ----

  def test_killed_workers_lose_only_what_is_inside_them
    server = cluster
    load = load_on(server, clients: CLIENTS)
    KILLS.times do |n|
      load.more(50)
      victim = workers(server).fetch(n % 2)
      after_signal(server, 0, /\A/)
      from = server.log.bytesize
      Process.kill("KILL", victim)
      server.wait_for_log(/^- Worker #{n % 2} .*booted/, from: from)
      assert_match(/^! Worker #{n % 2} \(PID: #{victim}\) ended by SIGKILL/, server.log)
    end
    load.more(50)
    failures = load.stop
    assert_operator failures.size, :<=, KILLS * CLIENTS, failures
  end

  def test_what_waits_for_a_killed_worker_is_served_by_the_next_one
    server = cluster(workers: 1)
    killed = workers(server).fetch(0)
    halt(killed)
    waiting = Array.new(3) { TCPSocket.new("127.0.0.1", server.port).tap { |s| s.write("GET / HTTP/1.0\r\n\r\n") } }
    Process.kill("KILL", killed)
    wait_for_workers(server, 2)
    bodies = waiting.map { |socket| socket.read[/\d+\z/] }
    assert_equal [workers(server).fetch(0).to_s], bodies.uniq
  ensure
    waiting&.each(&:close)
  end

  def test_a_killed_mold_is_replaced_when_it_is_needed
    server = cluster
    load = load_on(server)
    dead = mold(server)
    Process.kill("KILL", dead)
    server.wait_for_log(/^! The mold \(PID: #{dead}\) ended with SIGKILL/)
    load.more(50)
    assert_empty load.stop
    assert_nil mold(server)
    Process.kill("KILL", workers(server).fetch(1))
    wait_for_workers(server, 3)
    refute_nil mold(server)
    after_signal(server, "USR1", /(phase: 1.*){2}/m)
  end

  def test_nobody_outlives_a_killed_master
    server = cluster
    pids = descendants(server.pid)
    answer = Thread.new { get(server, "/slow") }
    server.wait_for_log(/slow began/)
    Process.kill("KILL", server.pid)
    write "go", ""
    assert_match(/\A\d+\z/, answer.value.body) # requests in flight still finish
    wait_for_end_of(*pids)
  end

  def test_workers_whose_ruby_is_stuck_do_not_outlive_the_master_either
    write "config.ru", <<~RUBY
      run ->(env) { env["PATH_INFO"] == "/" ? [200, {}, []] : (warn("stuck"); Process.kill("STOP", Process.pid); sleep) }
    RUBY
    write "config/rondo.rb", "force_shutdown_after 1\n"
    server = cluster
    Thread.new { get(server, "/stuck") }.report_on_exception = false
    server.wait_for_log(/^stuck$/)
    pids = descendants(server.pid)
    eventually("it stands still") { pids.any? { |pid| still?(pid) } }
    Process.kill("KILL", server.pid)
    pids.each { |pid| Process.kill("CONT", pid) if alive?(pid) }
    wait_for_end_of(*pids)
  end

  def test_ends_in_a_row_are_waited_for
    write "config/rondo.rb", "before_worker_boot { exit!(9) if File.exist?('bad') }\n"
    server = cluster
    write "bad", ""
    Process.kill("KILL", workers(server).fetch(0))
    server.wait_for_log(/^! Worker 0 .*cannot boot: .*ended with status 9 before it was ready; the next one starts in 1 s$/)
    assert_equal workers(server).fetch(1).to_s, eventually("an answer") { answer_of(server) }
    File.delete(File.join(@folder, "bad"))
    wait_for_workers(server, 3)
  end

  # Because of the hook, they are dead before the master has read their names.
  def test_workers_that_end_while_others_are_buried
    write "config/rondo.rb", "before_worker_boot { exit!(9) if File.exist?('bad') }\nafter_worker_shutdown { sleep 0.3 }\n"
    server = cluster(workers: 3)
    write "bad", ""
    workers(server).each_value { |pid| Process.kill("KILL", pid) }
    3.times { |index| server.wait_for_log(/^! Worker #{index} .*cannot boot: .*ended with status 9/) }
    File.delete(File.join(@folder, "bad"))
    wait_for_workers(server, 6)
  end

  def test_a_hook_that_raises_later_is_tried_again
    write "config/rondo.rb", "before_worker_boot { raise 'no database' if File.exist?('bad') }\n"
    server = cluster
    write "bad", ""
    Process.kill("KILL", workers(server).fetch(0))
    server.wait_for_log(/^! Worker 0 .*cannot boot: before_worker_boot raised at .*: no database \(RuntimeError\)/)
    File.delete(File.join(@folder, "bad"))
    wait_for_workers(server, 3)
  end

  # ---- hanging ----

  def test_a_worker_without_a_sign_of_life_is_replaced
    write "config/rondo.rb", "worker_timeout 2\nworker_check_interval 1\n"
    server = cluster
    hung = workers(server).fetch(0)
    halt(hung)
    server.wait_for_log(/^! Killed Worker 0 \(PID: #{hung}\): it did not check in within 2 s$/)
    wait_for_workers(server, 3)
    wait_for_end_of(hung)
  end

  def test_a_worker_that_does_not_stop_is_killed
    write "config/rondo.rb", "worker_shutdown_timeout 1\n"
    server = cluster
    hung = workers(server).fetch(0)
    halt(hung)
    server.stop
    assert_match(/^! Killed Worker 0 \(PID: #{hung}\): it did not end within 3 s after it was told to stop$/, server.log)
    assert_match(/Goodbye/, server.log)
  end

  def test_a_worker_that_does_not_stop_and_gives_signs_of_life_is_killed
    write "config/rondo.rb", "worker_shutdown_timeout 1\nbefore_worker_shutdown { sleep }\n#{OFTEN}"
    server = cluster
    pids = workers(server)
    server.stop
    2.times do |index|
      assert_match(/^! Killed Worker #{index} \(PID: #{pids[index]}\): it did not end within 3 s after it was told to stop$/, server.log)
    end
    assert_match(/Goodbye/, server.log)
  end

  def test_a_worker_that_does_not_stop_holds_no_phased_restart_up
    write "config.ru", "at_exit { sleep if $PROGRAM_NAME.include?('worker') && !File.exist?('go') }\n#{APP}"
    write "config/rondo.rb", "worker_shutdown_timeout 1\n#{OFTEN}"
    server = cluster
    restart(server, "USR1", phase: 1)
    write "go", ""
    assert server.stop.success?
  end

  def test_a_second_signal_hurries_a_worker_that_leaves
    write "config/rondo.rb", "worker_shutdown_timeout 600\nbefore_worker_shutdown { warn 'in its hook'; sleep }\n#{OFTEN}"
    server = cluster(workers: 1)
    pid = workers(server).fetch(0)
    after_signal(server, "TERM", /^in its hook$/)
    server.signal("TERM")
    server.wait_for_log(/^! Killed Worker 0 \(PID: #{pid}\): it did not end within 3 s after it was told to stop at once$/)
    server.wait_for_log(/^- Goodbye!$/)
  end

  # ---- molds that hang ----

  def test_a_mold_that_does_not_fork_any_more_is_replaced
    write "config/rondo.rb", "worker_boot_timeout 6\n"
    server = cluster
    hung = mold(server)
    halt(hung)
    Process.kill("KILL", workers(server).fetch(0))
    server.wait_for_log(/^! Killed the mold \(PID: #{hung}\): it no longer forks workers$/)
    wait_for_workers(server, 3)
    refute_includes children(server.pid), hung
  end

  def test_a_stop_does_not_wait_for_a_worker_that_nobody_forks
    server = cluster
    killed = workers(server).fetch(0)
    halt(mold(server))
    Process.kill("KILL", killed)
    server.wait_for_log(/^! Worker 0 .*SIGKILL/)
    after_signal(server, "INT", /Gracefully shutting down/)
    server.stop(deadline: 30) # half of the time that a worker has to boot
    assert_match(/Goodbye/, server.log)
  end

  def test_a_mold_that_does_not_end_is_killed
    write "config.ru", "at_exit { sleep if $PROGRAM_NAME.include?('mold') }\n#{APP}"
    write "config/rondo.rb", "worker_shutdown_timeout 1\n"
    server = cluster
    before = mold(server)
    after_signal(server, "USR1", /(phase: 1.*){2}/m)
    eventually("its burial") { !children(server.pid).include?(before) }
  end

  # The mold also ends when other code takes over while siblings listen for the slot.
  def test_a_mold_that_hangs_when_it_is_started_again_is_given_up
    write "config.ru", "(warn('hangs'); sleep) if File.exist?('hang')\n#{APP}"
    write "config/rondo.rb", "mold_boot_timeout 8\n" # it takes a part of that
    server = cluster
    first = mold(server)
    write "hang", ""
    Process.kill("KILL", first)
    server.wait_for_log(/^! The mold \(PID: #{first}\) ended with SIGKILL/)
    Process.kill("KILL", workers(server).fetch(0))
    server.wait_for_log(/^hangs$/)
    10.times { assert_equal workers(server).fetch(1).to_s, get(server).body }
    server.wait_for_log(/^! The mold cannot be started again: its application did not load within 8 s$/)
    File.delete(File.join(@folder, "hang"))
    wait_for_workers(server, 3)
    eventually("nobody but them") { children(server.pid).size == 3 }
  end

  def test_new_code_leaves_no_mold_behind_that_was_being_started_again
    write "config.ru", "(warn('hangs'); sleep) if File.exist?('hang')\n#{APP}"
    server = cluster
    write "hang", ""
    Process.kill("KILL", mold(server))
    server.wait_for_log(/^! The mold .* ended with SIGKILL/)
    Process.kill("KILL", workers(server).fetch(0))
    server.wait_for_log(/^hangs$/)
    File.delete(File.join(@folder, "hang"))
    after_signal(server, "USR1", /(phase: 1.*){2}/m)
    eventually("nobody but them") { children(server.pid).size == 3 }
  end

  # ---- lifetimes ----

  def test_workers_are_replaced_after_so_many_requests
    write "config/rondo.rb", "max_requests 50\nrecycle_jitter 50\nworker_check_interval 1\n"
    server = cluster
    first = workers(server)
    load = load_on(server)
    2.times { |index| server.wait_for_log(/^- Replacing Worker #{index} \(PID: #{first[index]}\): \d+ requests$/) }
    wait_for_end_of(*first.values)
    load.more(20)
    assert_empty load.stop
  end

  def test_workers_are_replaced_when_they_are_old_one_at_a_time
    write "config/rondo.rb", "max_age 1\nrecycle_jitter 0\nworker_check_interval 1\n"
    server = cluster
    load = load_on(server)
    first = workers(server)
    2.times { |index| server.wait_for_log(/^- Replacing Worker #{index} \(PID: #{first[index]}\): \d+ s old$/) }
    wait_for_end_of(*first.values)
    load.more(20)
    assert_empty load.stop
    eventually("one in each slot") { workers(server).size == 2 } # they go on being replaced
  end

  def test_workers_are_replaced_when_they_are_large
    write "config.ru", "KEPT = []\nrun ->(env) { KEPT << 'x' * 40_000_000 if env['PATH_INFO'] == '/grow'; [200, {}, [Process.pid.to_s]] }"
    write "config/rondo.rb", "max_memory '100m', measure: :pss\nworker_check_interval 1\n"
    server = cluster(workers: 1)
    large = workers(server).fetch(0)
    4.times { get(server, "/grow") }
    server.wait_for_log(/^- Replacing Worker 0 \(PID: #{large}\): \d+ MiB of memory \(pss\)$/)
    wait_for_end_of(large)
    refute_equal large.to_s, get(server).body
  end

  private

  def answer_of(server)
    get(server).body
  rescue SystemCallError, Net::ReadTimeout
    nil
  end
end
