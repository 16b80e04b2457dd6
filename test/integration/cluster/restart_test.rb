# frozen_string_literal: true

# Restarts under load: new code is used, no client notices, and code that cannot be used changes nothing.
# RONDO_TEST_RESTARTS is the number of restarts in the longest tests.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterRestartTest < ClusterCase
  RESTARTS = ENV.fetch("RONDO_TEST_RESTARTS", "5").to_i

  def code(server)
    get(server, "/code").body
  end

  def newer_code(name)
    write "config.ru", APP.sub('"one"', name.inspect)
  end

  # ---- nothing is lost ----

  def test_phased_restarts_under_load
    server = cluster
    load = load_on(server)
    RESTARTS.times do |n|
      newer_code("code #{n}")
      load.more(20)
      restart(server, "USR1", phase: n + 1)
      assert_equal "code #{n}", code(server)
    end
    load.more(20)
    assert_empty load.stop
    eventually("one mold") { children(server.pid).one? { |pid| title(pid).include?("mold") } }
  end

  def test_whole_restarts_under_load
    server = cluster
    own = server.own_urls
    load = load_on(server)
    RESTARTS.times do |n|
      newer_code("code #{n}")
      load.more(20)
      restart(server, "USR2", phase: n + 1)
      assert_equal "code #{n}", code(server)
    end
    assert_empty load.stop
    assert_equal own, server.own_urls
    assert server.stop.success?
  end

  def test_requests_in_flight_finish_in_the_old_worker
    %w[USR1 USR2].each_with_index do |signal, index|
      FileUtils.rm_f(File.join(@folder, "go"))
      server = cluster
      answer = Thread.new { get(server, "/slow") }
      server.wait_for_log(/slow began/)
      after_signal(server, signal, /^- Worker \d .*phase: 1$/)
      write "go", ""
      assert_match(/\A\d+\z/, answer.value.body, index)
      wait_for_workers(server, 2, phase: 1)
      server.stop
    end
  end

  def test_a_worker_serves_before_the_one_it_replaces_leaves
    server = cluster(workers: 1)
    old = workers(server).fetch(0)
    answer = Thread.new { get(server, "/slow") }
    server.wait_for_log(/slow began/)
    after_signal(server, "USR1", /^- Worker 0 .*phase: 1$/)
    assert alive?(old), "the old worker has left before its request was answered"
    eventually("the new worker") { get(server).body == workers(server).fetch(0).to_s }
    write "go", ""
    assert_equal old.to_s, answer.value.body
  end

  # ---- changes that come with a restart ----

  def test_configuration_is_read_anew
    write "config/rondo.rb", "workers 1\nrack_url_scheme 'http'\n"
    write "config.ru", "run ->(env) { [200, {}, [env['rack.url_scheme']]] }\n"
    server = start
    server.wait_for_log(/booted/)
    write "config/rondo.rb", "workers 3\nrack_url_scheme 'https'\n"
    restart(server, "USR1", phase: 1, count: 1)
    assert_equal "https", get(server).body
    restart(server, "USR2", phase: 2, count: 3) # the master reads it anew, too
    assert_equal 3, workers(server).size
    write "config/rondo.rb", "workers 1\n"
    restart(server, "USR2", phase: 3, count: 1)
    assert_equal [0], workers(server).keys
  end

  def test_a_restart_keeps_unix_sockets
    path = File.join(@folder, "s.sock")
    server = cluster(binds: ["tcp://127.0.0.1:0", "unix://#{path}"])
    2.times { |n| restart(server, "USR2", phase: n + 1) }
    UNIXSocket.open(XorProxy.front_path(path)) do |client|
      client.write("GET / HTTP/1.0\r\n\r\n")
      assert_includes workers(server).values.map(&:to_s), client.read[/\d+\z/]
    end
    server.stop
    refute_path_exists path
  end

  def test_from_one_process_to_workers
    server = start
    assert_equal server.pid.to_s, get(server).body
    write "config/rondo.rb", "workers 2\n"
    after_signal(server, "USR2", /(booted in.*){2}/m)
    assert_includes workers(server).values.map(&:to_s), get(server).body
    write "config/rondo.rb", "workers 0\n"
    after_signal(server, "USR2", /single mode.*Use Ctrl-C/m)
    eventually("nobody else") { children(server.pid).empty? }
    assert_equal server.pid.to_s, get(server).body
    assert server.stop.success?
  end

  def test_touching_tmp_restart_txt_restarts
    write "config/rondo.rb", "plugin :tmp_restart\n"
    server = cluster
    write "tmp/restart.txt", ""
    wait_for_workers(server, 2, phase: 1)
    assert_match(/^- Restarting\.\.\.$/, server.log)
  end

  # ---- code that cannot be used ----

  def test_an_application_that_raises_leaves_the_old_one_serving
    server = cluster
    before = workers(server)
    write "config.ru", "\nraise 'no luck'\n"
    %w[USR1 USR2].each do |signal|
      after_signal(server, signal, /^! Generation 1 is not used: .*config\.ru:2: no luck \(RuntimeError\), at `raise 'no luck'`; generation 0 keeps serving$/)
      assert_match(/^RuntimeError: no luck\n    config\.ru:2:in /, server.log)
      assert_equal before, workers(server)
      assert_includes before.values.map(&:to_s), get(server).body
    end
    newer_code("mended")
    restart(server, "USR1", phase: 1)
    assert_equal "mended", code(server)
  end

  def test_files_and_hooks_that_raise_leave_the_old_one_serving
    server = cluster
    before = workers(server)
    { "nonsense 1" => /rondo\.rb:1: unknown setting nonsense/,
      "before_fork { raise 'no fork' }" => /before_fork raised at .*rondo\.rb:1: no fork/,
      "before_worker_boot { raise 'no boot' }" => /before_worker_boot raised at .*rondo\.rb:1: no boot/,
      "exit!(3)" => /the mold ended with status 3 while it loaded/ }.each do |text, reason|
      write "config/rondo.rb", text
      after_signal(server, "USR1", /^! Generation \d is not used: .*#{reason.source}.*; generation 0 keeps serving$/)
      eventually("only the old ones") { children(server.pid).size == 3 }
      assert_equal before, workers(server)
    end
    write "config/rondo.rb", ""
    restart(server, "USR1", phase: 1)
  end

  def test_a_worker_of_new_code_that_hangs_at_boot_leaves_the_old_one_serving
    write "config/rondo.rb", "worker_boot_timeout 6\nbefore_worker_boot { sleep if File.exist?('hang') }\n"
    server = cluster
    before = workers(server)
    write "hang", ""
    after_signal(server, "USR1", /^! Generation 1 is not used: it was not ready after 6 s; generation 0 keeps serving$/)
    assert_equal before, workers(server)
  end

  def test_an_application_that_never_loads_is_given_up
    write "config/rondo.rb", "mold_boot_timeout 8\n"
    server = cluster
    write "config.ru", "sleep\n"
    after_signal(server, "USR1", /^! Generation 1 is not used: its application did not load within 8 s/)
    eventually("only the old ones") { children(server.pid).size == 3 }
  end

  def test_a_worker_that_fails_when_some_are_replaced_brings_the_old_code_back
    write "config/rondo.rb", "before_worker_boot { |index| raise 'only one' if index == 1 && File.exist?('bad') }\n"
    server = cluster
    load = load_on(server)
    load.more(10)
    write "bad", ""
    newer_code("two")
    after_signal(server, "USR1", /^! Generation 1 is not used: before_worker_boot raised .*only one/)
    server.wait_for_log(/^- Worker 0 .*phase: 1$.*^- Worker 0 .*phase: 0$/m)
    eventually("the old code") { children(server.pid).size == 3 }
    assert_equal "one", code(server)
    assert_empty load.stop
  end

  # ---- signals during a restart ----

  def test_a_restart_during_a_restart
    server = cluster
    6.times { |n| newer_code("code #{n}") && server.signal(%w[USR1 USR2][n % 2]) }
    eventually("the newest code everywhere") { Array.new(4) { code(server) }.uniq == ["code 5"] && children(server.pid).size == 3 }
    assert server.stop.success?
  end

  # Each of these signals would end a program that is just starting.
  def test_signals_while_one_program_replaces_the_other
    server = cluster
    after_signal(server, "USR2", /^- Restarting\.\.\.$/)
    eventually("the next program") do
      %w[USR1 USR2 TTIN TTOU].each { |signal| server.signal(signal) }
      server.log.scan("Rondo starting").size > 1
    end
    assert_predicate server, :alive?
    assert_equal "200", get(server).code
  end

  def test_a_phased_restart_does_not_take_the_place_of_a_whole_one
    write "config.ru", "warn 'loading'\nsleep 0.005 while File.exist?('slowly')\n#{APP}"
    server = cluster
    write "slowly", ""
    after_signal(server, "USR2", /^loading$/)
    after_signal(server, "USR1", /^- Restarting: loading the application$/)
    File.delete(File.join(@folder, "slowly"))
    server.wait_for_log(/^- Restarting\.\.\.$/)
    wait_for_workers(server, 4)
    assert server.stop.success?
  end

  def test_files_that_cannot_be_written_any_more_end_nobody
    server = cluster("--pidfile", "pid/server")
    FileUtils.rm_rf(File.join(@folder, "pid"))
    write "pid", ""
    restart(server, "USR2", phase: 1)
    assert_match(%r{^! cannot write .*/pid/server: }, server.log)
    assert_equal "200", get(server).code
  end

  # The folder of the start is gone, or the program itself.
  def test_a_program_that_cannot_be_started_again_leaves_this_one_serving
    FileUtils.mkdir_p(File.join(@folder, "app"))
    write "app/config.ru", APP
    write "app/rondo.rb", "before_restart { File.rename('../app', '../moved') if File.exist?('bad') }\n"
    app = File.join(@folder, "app")
    server = cluster("-C", "rondo.rb", "--control-url", "auto", "-S", "#{@folder}/state",
                     spawn: { chdir: app }, env: { "PWD" => app })
    write "app/bad", ""
    2.times do |n|
      after_signal(server, "USR2", /^! cannot (restart|start a mold): .*No such file/)
      children(server.pid).then { |pids| assert_operator pids.size, :<=, 4 }
      eventually("two workers and a mold #{n}") { children(server.pid).size == 3 }
    end
    killed = workers(server).fetch(0)
    Process.kill("KILL", killed)
    wait_for_workers(server, 3)
    assert_equal 0, rondo("ctl", "stats", "-S", "state").code
    assert server.stop.success?
    assert_match(/Goodbye/, server.log)
  end

  # Connections in the queue of a slot that the next master does not have and that no worker serves.
  def test_a_slot_too_many_without_a_worker
    write "config/rondo.rb", "before_worker_boot { |index| exit!(9) if index == 2 && File.exist?('bad') }\n"
    server = cluster
    after_signal(server, "TTIN", /^- Worker 2 .*booted/)
    write "bad", ""
    Process.kill("KILL", workers(server).fetch(2))
    server.wait_for_log(/^! Worker 2 .*the next one starts in/)
    load = load_on(server)
    load.more(50)
    restart(server, "USR2", phase: 1)
    load.more(50)
    assert_empty load.stop
    assert_equal 2, listening_sockets(server)
  end

  def test_one_more_and_one_less_during_a_restart
    server = cluster
    load = load_on(server)
    %w[USR1 TTIN USR1 TTOU TTIN USR2 TTOU].each { |signal| server.signal(signal) && load.more(5) }
    server.wait_for_log(/^- Restarting\.\.\.$.*^- Worker \d+ .*booted/m) # by then the other program handles signals
    eventually("peace") { children(server.pid).size.between?(3, 4) && get(server) }
    assert_empty load.stop
    assert server.stop.success?
  end

  def test_a_stop_wins_over_a_restart
    write "config.ru", "warn 'loading'\nsleep if File.exist?('slowly')\n#{APP}"
    server = cluster
    write "slowly", ""
    %w[USR1 USR2].each do |signal|
      after_signal(server, signal, /^loading$/)
    end
    assert server.stop.success?
    refute_match(/^- Restarting\.\.\.$/, server.log)
  end
end
