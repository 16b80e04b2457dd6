# frozen_string_literal: true

# The signals of a master, one after the other, and how its workers handle theirs.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require "support/notify_socket"

class ClusterSignalsTest < ClusterCase
  ENDS = "before_worker_shutdown { |index| warn \"end of \#{index}\" }\nafter_stopped { warn 'stopped' }\n"

  # A worker boots when there is no file "hold".
  HELD = "before_worker_boot { warn \"boots: \#{Process.pid}\"; IO.select(nil, nil, nil, 0.01) while File.exist?('hold') }\n"

  # ---- stopping ----

  def test_int_quit_and_term
    { "INT" => 0, "QUIT" => 0, "TERM" => nil }.each do |signal, code|
      server = cluster("--pidfile", "pid", "-S", "state")
      pids = descendants(server.pid)
      assert_equal server.pid.to_s, read("pid").chomp
      assert_includes read("state"), server.own_urls.first
      status = server.stop(signal: signal)
      assert_equal [code, (Signal.list["TERM"] unless code)], [status.exitstatus, status.termsig]
      assert_match(/^- Gracefully shutting down workers\.\.\.\n(?:.*\n)*- Goodbye!\n\z/, server.log)
      assert_empty(pids.select { |pid| alive?(pid) })
      assert_empty Dir[File.join(@folder, "{pid,state}")]
    end
  end

  def test_term_ends_well_where_that_is_asked_for
    write "config/rondo.rb", "raise_exception_on_sigterm false\n"
    assert_equal 0, cluster.stop(signal: "TERM").exitstatus
  end

  def test_requests_in_flight_finish
    server = cluster
    answer = in_flight(server)
    after_signal(server, "INT", /Gracefully shutting down/)
    server.wait_for_log(/^- Worker \d \(PID: \d+\) waits for 1 request, the oldest GET \/\S* for \d+\.\d s, at most 30 s; a second/)
    write "go", ""
    assert_equal "200", answer.value.code
    assert server.stop(signal: 0).success?
  end

  def test_a_term_for_the_whole_group_is_graceful
    server = cluster
    answer = in_flight(server)
    Process.kill("-TERM", server.pid) # one by one, the first would have begun to end the others
    server.wait_for_log(/Gracefully shutting down/)
    write "go", ""
    assert_equal "200", answer.value.code
    assert_equal Signal.list["TERM"], server.stop(signal: 0).termsig
  end

  def test_the_second_signal_forces_the_stop
    write "config/rondo.rb", ENDS
    server = cluster
    in_flight(server)
    after_signal(server, "TERM", /Gracefully shutting down/)
    after_signal(server, "TERM", /Stopping at once/)
    assert_equal Signal.list["TERM"], server.stop(signal: 0).termsig
    assert_ended server
  end

  def test_an_application_has_until_the_deadline_of_the_drain
    write "config/rondo.rb", "force_shutdown_after :immediately\n#{ENDS}"
    server = cluster
    in_flight(server)
    assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
    assert_ended server
  end

  # ---- one more, one less ----

  def test_one_more_and_one_less
    server = cluster
    after_signal(server, "TTIN", /^- Worker 2 \(PID: \d+\) booted/)
    2.downto(1) { |index| one_less(server, index) }
    after_signal(server, "TTOU", /^! No worker was ended: it is the last one$/)
    assert_equal workers(server).fetch(0).to_s, get(server).body
    after_signal(server, "TTIN", /^- Worker 1 \(PID: \d+\) booted/)
  end

  def test_the_oldest_leaves_where_that_is_asked_for
    write "config/rondo.rb", "worker_culling_strategy :oldest\n"
    server = cluster
    one_less(server, 0)
    after_signal(server, "TTIN", /^- Worker 0 \(PID: \d+\) booted/)
  end

  # The sockets of slots without a worker would swallow connections.
  def test_a_slot_between_two_others_that_is_not_served_has_no_socket
    write "config/rondo.rb", "worker_culling_strategy :oldest\n"
    server = cluster(workers: 3)
    2.times { |index| one_less(server, index) }
    after_signal(server, "TTIN", /^- Worker 0 \(PID: \d+\) booted/)
    assert_equal 2, listening_sockets(server)
  end

  # The kernel adds connections to a closing socket until the last moment.
  def test_nobody_is_lost_when_a_slot_goes
    server = cluster(workers: 3)
    load = load_on(server, clients: 8)
    3.times do
      one_less(server, 2)
      after_signal(server, "TTIN", /^- Worker 2 .*booted/)
    end
    server.signal("TTIN") && server.signal("TTOU") # before there is a worker
    load.more(50)
    assert_empty load.stop
  end

  # A worker that listens for a slot without a worker closes that socket with the slot, and continues to serve.
  def test_a_slot_that_siblings_serve_goes
    write "config/rondo.rb", "before_worker_boot { |index| exit!(9) if index == 2 && File.exist?('bad') }\n"
    server = cluster(workers: 3)
    write "bad", ""
    Process.kill("KILL", workers(server).fetch(2))
    server.wait_for_log(/^! Worker 2 .*the next one starts in/)
    load = load_on(server)
    load.more(50)
    server.signal("TTOU")
    eventually("two sockets") { listening_sockets(server) == 2 }
    load.more(50)
    assert_empty load.stop
    assert_equal [0, 1], workers(server).keys.sort
  end

  def test_there_is_room_for_so_many
    server = cluster
    14.times { |n| after_signal(server, "TTIN", /^- Worker #{n + 2} .*booted/) }
    after_signal(server, "TTIN", /^! No worker was added: there is room for 16 workers$/)
  end

  def test_nothing_is_lost_when_one_leaves
    server = cluster(workers: 3)
    load = load_on(server)
    load.more(100)
    2.downto(1) do |index|
      one_less(server, index)
      load.more(100)
    end
    assert_empty load.stop
  end

  # ---- signals that print ----

  def test_backtraces_of_all_workers
    server = cluster
    server.signal(Signal.list.key?("INFO") ? "INFO" : "PWR")
    2.times { |index| server.wait_for_log(/^Worker #{index} \(PID: \d+\):\n +Thread/) }
    server.wait_for_log(/^Master \(PID: #{server.pid}\):\n +Thread/)
    from = server.log.bytesize
    Process.kill(Signal.list.key?("INFO") ? "INFO" : "PWR", workers(server).fetch(1))
    server.wait_for_log(/^Worker 1 /, from: from)
  end

  # ---- logs ----

  def test_hup_opens_logs_again_everywhere
    write "config/rondo.rb", "request_log_output 'stderr'\n"
    server = cluster("--redirect-stderr", "out.log", "-v")
    get(server, "/first")
    eventually("the first line") { read("out.log").include?("/first") }
    File.rename(File.join(@folder, "out.log"), File.join(@folder, "old.log"))
    server.signal("HUP")
    inode = eventually("a new file") { File.stat(File.join(@folder, "out.log")).ino rescue nil }
    eventually("everybody writes to it") do
      descendants(server.pid).all? { |pid| File.stat("/proc/#{pid}/fd/2").ino == inode }
    end
    get(server, "/second")
    eventually("the second line") { read("out.log").include?("/second") }
  end

  def test_hup_stops_where_nothing_is_redirected
    assert cluster.stop(signal: "HUP").success?
  end

  # ---- signals of workers ----

  def test_a_worker_that_gets_term_is_replaced
    server = cluster
    Process.kill("TERM", workers(server).fetch(0))
    wait_for_workers(server, 3)
    assert_equal 2, workers(server).size
  end

  # Nobody but the only worker accepts connections until the next one does.
  def test_a_worker_that_gets_term_serves_until_another_one_does
    server, old = held(1)
    term(server, old)
    3.times { assert_equal old.to_s, get(server).body }
    let_boot
    wait_for_end_of(old)
    assert_equal workers(server).fetch(0).to_s, get(server).body
    assert_nothing_failed server
  end

  def test_nobody_waits_for_a_worker_that_gets_term
    server, *old = held(3)
    load = load_on(server, clients: 8)
    old.each { |pid| term(server, pid) }
    load.more(100)
    let_boot
    wait_for_end_of(*old)
    load.more(100)
    assert_empty load.stop
    assert_equal [0, 1, 2], workers(server).keys.sort
    assert_nothing_failed server
  end

  def test_the_second_term_of_a_worker_does_not_wait_for_another_one
    server, old = held(1)
    answer = in_flight(server)
    term(server, old)
    term(server, old, /^- Worker 0 \(PID: #{old}\) stops: TERM$/)
    write "go", ""
    assert_equal old.to_s, answer.value.body
    wait_for_end_of(old)
    let_boot
    wait_for_workers(server, 2)
    assert_nothing_failed server
  end

  def test_a_worker_that_gets_term_while_it_boots
    server, first = booting
    term(server, first)
    let_boot
    wait_for_workers(server, 2)
    wait_for_end_of(first)
    assert_nothing_failed server
  end

  def test_a_worker_that_gets_term_twice_while_it_boots
    server, first = booting
    term(server, first)
    term(server, first, /^- Worker 0 \(PID: #{first}\) stops: TERM$/)
    server.wait_for_log(/^boots: (?!#{first}$)/)
    let_boot
    wait_for_workers(server, 1)
    assert_nothing_failed server
  end

  # They are of the code before, and after USR2 of another master. Each of them has one successor.
  %w[USR1 USR2].each do |signal|
    define_method("test_workers_that_get_term_while_#{signal}_replaces_them") do
      server, *old = held(2)
      from = server.log.bytesize
      after_signal(server, signal, /^boots: /)
      old.each { |pid| term(server, pid) }
      let_boot
      wait_for_workers(server, 2, phase: 1, from: from)
      wait_for_end_of(*old)
      assert_equal 2, server.log.byteslice(from..).scan(BOOTED).size
      assert_nothing_failed server
    end
  end

  def test_the_next_worker_gets_term_while_a_phased_restart_boots_it
    server, old = held(1)
    from = server.log.bytesize
    server.signal("USR1")
    boots = server.wait_for_log(/^boots: (\d+)$/, from: from)[1].to_i
    term(server, boots)
    let_boot
    wait_for_workers(server, 2, phase: 1, from: from)
    wait_for_end_of(old, boots)
    assert_equal workers(server).fetch(0).to_s, get(server).body
    assert_nothing_failed server
  end

  def test_a_worker_needs_no_master_that_answers_to_end
    server = cluster(workers: 1)
    old = workers(server).fetch(0)
    halt(server.pid)
    eventually("its end") { (Process.kill("TERM", old) && false) || !alive?(old) }
    server.signal("CONT")
    wait_for_workers(server, 2)
    assert_nothing_failed server
  end

  # As who ends all processes of a server does it.
  def test_a_term_for_the_whole_group_before_the_stop_begins
    write "config/rondo.rb", "drain_delay 600\nbefore_worker_drain { |index| warn \"drains: \#{index}\" }\n"
    server = cluster
    all = [mold(server), *workers(server).values]
    Process.kill("-TERM", server.pid)
    server.wait_for_log(/^- Not ready any more/)
    load = load_on(server, clients: 8)
    load.more(200)
    assert_empty load.stop
    assert_equal all, [mold(server), *workers(server).values]
    assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
    assert_match(/^- Gracefully.*^drains: \d\n(?:.*\n)*drains: \d$/m, server.log)
    assert_equal 2, server.log.scan(/^drains/).size
    refute_match(/^! The mold|^- Replacing|^drains.*^- Gracefully/m, server.log)
  end

  def test_a_mold_minds_no_term
    server = cluster
    mold = mold(server)
    Process.kill("TERM", mold)
    Process.kill("KILL", workers(server).fetch(0))
    wait_for_workers(server, 3)
    assert_equal mold, mold(server)
    refute_match(/^! The mold/, server.log)
    assert server.stop.success?
  end

  # The signal is for itself alone.
  def test_a_child_of_the_application_that_gets_term
    write "config.ru", "run ->(_) { [200, {}, [fork { sleep }.to_s]] }\n"
    server = cluster
    child = get(server).body.to_i
    Process.kill("TERM", child)
    wait_for_end_of(child)
    assert server.stop.success?
    refute_match(/^- Replacing/, server.log)
  ensure
    Process.kill("KILL", child) if child && alive?(child)
  end

  def test_workers_mind_no_signals_of_the_master
    server = cluster
    pids = workers(server).values
    %w[INT USR1 USR2 TTIN TTOU].each { |signal| pids.each { |pid| Process.kill(signal, pid) } }
    assert_includes pids.map(&:to_s), get(server).body
    assert_equal pids, workers(server).values
  end

  # ---- systemd ----

  def test_systemd_is_told
    path = File.join(@folder, "notify")
    told = NotifySocket.new(path)
    server = cluster(env: { "NOTIFY_SOCKET" => path, "WATCHDOG_USEC" => "2000000" })
    assert told.hear(/\AREADY=1\z/)
    assert told.hear(/\AWATCHDOG=1\z/)
    assert told.hear(%r{\ASTATUS=Rondo \S+: cluster: 2/2, worker_status: \[\{ \d+/\d+ threads, })
    server.signal("USR1")
    assert told.hear(/\ARELOADING=1\nMONOTONIC_USEC=\d+\z/)
    assert told.hear(/\AREADY=1\z/)
    server.stop
    assert told.hear(/\ASTOPPING=1\z/)
  ensure
    told&.close
  end

  private

  # @return [Array(Server, *Integer)] with its workers; those that come after them wait for {#let_boot}
  def held(count)
    write "config/rondo.rb", HELD
    server = cluster(workers: count)
    write "hold", ""
    [server, *workers(server).values]
  end

  # Its worker is in a hook, and serves nobody yet.
  # @return [Array(Server, Integer)]
  def booting
    write "hold", ""
    write "config/rondo.rb", HELD
    server = start("-w", "1")
    [server, server.wait_for_log(/^boots: (\d+)$/)[1].to_i]
  end

  def let_boot
    File.delete(File.join(@folder, "hold"))
  end

  # Returns when the master knows.
  def term(server, pid, line = /^- Replacing Worker \d \(PID: #{pid}\): TERM$/)
    from = server.log.bytesize
    Process.kill("TERM", pid)
    server.wait_for_log(line, from: from)
  end

  # No end of a worker counts as a crash, and nothing waits after it.
  def assert_nothing_failed(server)
    assert server.stop.success?
    refute_match(/^! /, server.log)
  end

  # Returns when the worker of that slot, which is the one to end, has gone.
  def one_less(server, index)
    leaving = workers(server).fetch(index)
    server.signal("TTOU")
    wait_for_end_of(leaving)
  end

  def in_flight(server)
    answer = Thread.new { get(server, "/slow") }
    answer.report_on_exception = false
    server.wait_for_log(/slow began/)
    answer
  end

  # The worker that was given up ends with all its processes, and so does the master.
  def assert_ended(server)
    assert_match(/^- Ended while the application was still working on a request \(1 request, the oldest GET /, server.log)
    assert_equal ["end of 0", "end of 1"], server.log.scan(/^end of \d+$/).sort
    assert_match(/^stopped\n- Goodbye!\n\z/, server.log)
  end
end
