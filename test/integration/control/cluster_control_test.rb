# frozen_string_literal: true

# The control server of a cluster: the master's, about its workers.
# SPDX-License-Identifier: MIT

require_relative "control_case"

class ClusterControlTest < ControlCase
  BOOTED = /^- Worker (\d+) \(PID: (\d+)\) booted in \d+\.\d+s, phase: (\d+)$/

  def cluster(*words)
    server = controlled("-w", "2", "-S", "state", *words)
    eventually("two workers") { ctl_out("ready") == "ready: 2 of 2\n" }
    server
  end

  def ctl_out(verb)
    ctl(verb, "-S", "state", "-Q").out
  end

  def stats
    JSON.parse(ctl_out("stats"))
  end

  def test_stats_are_pumas
    server = cluster
    pids = server.log.scan(BOOTED).to_h { |index, pid, _| [index.to_i, pid.to_i] }
    found = stats
    assert_equal [2, 0, 2, 0], found.values_at("workers", "phase", "booted_workers", "old_workers")
    assert_equal(pids, found["worker_status"].to_h { |row| [row["index"], row["pid"]] })
    assert_equal([[true, 0]] * 2, found["worker_status"].map { |row| row.values_at("booted", "phase") })
    assert_equal([0, 1], found["accept_queues"].map { |queue| queue["worker"] })
    assert_operator found.values_at("master_rss_bytes", "mold_rss_bytes").min, :>, 1 << 20
    assert_match(/^rondo_workers{state="ready"} 2$/, ctl_out("metrics"))
    line = rondo("top", "-S", "state", "--once", "--interval", "0.1").out
    assert_match(%r{ workers=2/2 }, line)
  end

  def test_it_answers_while_all_workers_and_the_mold_stand_still
    server = cluster
    stopped = stats["worker_status"].map { |row| row["pid"] }
    stopped.each { |pid| halt(pid) }
    assert_equal "200", control(server, "/live", token: nil).code
    assert_equal 2, stats["workers"]
  ensure
    stopped&.each { |pid| Process.kill("CONT", pid) }
  end

  def test_verbs
    server = cluster
    assert_equal 0, ctl("worker-count-up", "-S", "state").code
    eventually("a third worker") { ctl_out("ready") == "ready: 3 of 3\n" }
    assert_equal([0, 1, 2], stats["accept_queues"].map { |queue| queue["worker"] })
    assert_equal 0, ctl("worker-count-down", "-S", "state").code
    eventually("two again") { ctl_out("ready") == "ready: 2 of 2\n" }
    assert_equal 0, ctl("phased-restart", "-S", "state").code
    eventually("the next generation") { stats.then { |now| now["phase"] == 1 && now.values_at("workers", "old_workers") == [2, 0] } }
    assert_equal([0, 1], stats["worker_status"].map { |row| row["index"] }.sort)
    assert_equal 0, ctl("refork", "-S", "state").code
    server.wait_for_log(/^- Starting worker refork$.*(?:^- Worker \d .* phase: 1$.*){2}/m)
    assert_equal 0, ctl("reload-worker-directory", "-S", "state").code
    server.wait_for_log(/^- The next phased restart or restart goes to #{Regexp.escape(File.realpath(@folder))} anew$/)
    assert_equal 0, ctl("halt", "-S", "state").code
    assert server.stop(signal: 0).success?
    refute File.exist?(File.join(@folder, "state"))
  end

  # By the signal, without the control server.
  def test_refork_by_the_process_id
    server = cluster
    assert_equal 0, ctl("refork", "-p", server.pid.to_s).code
    server.wait_for_log(/^- Starting worker refork$/)
  end

  def test_a_restart_keeps_the_socket
    server = cluster
    address = control_url(server)
    booted = server.log.bytesize
    assert_equal "200", control(server, "/restart").code
    server.wait_for_log(/Restarting\.\.\..*Control server on #{Regexp.escape(address)}$/m, from: booted)
    eventually("the new master") { control(server, "/ready").body == "ready: 2 of 2\n" }
  end
end
