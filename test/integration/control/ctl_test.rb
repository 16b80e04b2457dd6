# frozen_string_literal: true

# `rondo ctl`: every way to name a server, every verb, exit codes.
# SPDX-License-Identifier: MIT

require_relative "control_case"

class CtlTest < ControlCase
  # ---- naming a server ----

  def test_every_way_to_name_a_server
    server = controlled("-S", "state", "--pidfile", "pid")
    write "some.rb", "state_path 'state'\n"
    write "other.rb", "activate_control_app '#{control_url(server)}', auth_token: '#{TOKEN}'\n"
    [%w[-S state], %w[--state=state], %w[-P pid], ["-p", server.pid.to_s], %w[-C some.rb], %w[-C other.rb],
     ["--control-url", control_url(server), "-T", TOKEN],
     ["--control-url", control_url(server), "--control-token", TOKEN]].each do |words|
      result = ctl("status", *words)
      assert_equal ["Rondo is started\n", "", 0], [result.out, result.err, result.code], words
    end
    FileUtils.mkdir_p(File.join(@folder, "config"))
    FileUtils.mv(File.join(@folder, "some.rb"), File.join(@folder, "config/rondo.rb"))
    assert_equal 0, ctl("status").code
  end

  def test_servers_that_are_not_there
    write "old", "---\npid: 99999999\ncontrol_url: unix:///#{@folder}/none.sock\n"
    write "garbage", "nothing\n"
    { [] => /which server is meant/, %w[-S none] => /cannot read the state file none: No such file/,
      %w[-S old] => /not running: no control server at unix:.*: No such file/, %w[-P none] => /cannot read none/,
      %w[-S garbage] => /which server is meant/, %w[-P garbage] => /does not contain a process id/, %w[-p 99999999] => /not running: No such process/,
      %w[--control-url nonsense] => /nonsense is not the address of a control server: expected tcp/, %w[-C none.rb] => /cannot read none\.rb/ }.each do |words, pattern|
      assert_complaint 1, pattern, ctl("status", *words)
    end
  end

  def test_wrong_words
    assert_complaint 1, /the verb is missing.*thread-backtraces/, ctl
    assert_complaint 1, /unknown verb restrat; did you mean restart\?/, ctl("restrat")
    assert_complaint 1, /invalid option --stat; did you mean --state\?/, ctl("status", "--stat", "x")
    assert_complaint 1, /too many arguments: now/, ctl("stop", "now")
    help = ctl("--help")
    assert_equal 0, help.code
    assert_match(/worker-count-up/, help.out)
  end

  def test_what_is_no_control_server
    server = controlled
    assert_complaint 1, /no control server at tcp:.*: Connection refused/, ctl("gc", "--control-url", "tcp://127.0.0.1:1")
    assert_complaint 1, /wrong or missing token/, ctl("stats", "--control-url", control_url(server))
    assert_complaint 1, /wrong or missing token/, ctl("stats", "--control-url", control_url(server), "-T", "wrong")
    secure = control_url(server).sub("tcp:", "ssl:") # where somebody believes that nobody can read the token
    assert_complaint 1, /#{secure} is not the address of a control server/, ctl("stats", "--control-url", secure, "-T", TOKEN)
  end

  # ---- verbs by the control server ----

  def test_verbs_that_show
    controlled("-S", "state")
    stats = ctl("stats", "-S", "state")
    assert_equal "Command stats sent success\n", stats.out.lines.first
    assert JSON.parse(stats.out.lines.last).key?("pool_capacity")
    assert JSON.parse(ctl("gc-stats", "-S", "state", "-Q").out).key?("heap_live_slots")
    assert_match(/launcher\.rb/, JSON.parse(ctl("thread-backtraces", "-S", "state", "-Q").out).map { |row| row["backtrace"] }.join)
    assert_match(/^# TYPE rondo_requests_total counter$/, ctl("metrics", "-S", "state", "-Q").out)
    assert_equal "ready: 1 of 1\n", ctl("ready", "-S", "state").out
    assert_equal ["Command gc sent success\n", 0], ctl("gc", "-S", "state").then { |result| [result.out, result.code] }
  end

  def test_verbs_that_do
    server = controlled("-S", "state", "--redirect-stderr", "err.log", "-v")
    assert_equal "Command info sent success\n", ctl("info", "-S", "state").out
    eventually("the backtraces") { read("err.log").match?(/^    Thread #<Thread:/) }
    FileUtils.mv(File.join(@folder, "err.log"), File.join(@folder, "old.log"))
    assert_equal 0, ctl("reopen-log", "-S", "state").code
    eventually("a new file") { File.exist?(File.join(@folder, "err.log")) }
    %w[phased-restart refork worker-count-up worker-count-down reload-worker-directory].each do |verb|
      assert_complaint 1, /#{verb} not available/, ctl(verb, "-S", "state")
    end
    assert_equal 0, ctl("stop", "-S", "state").code
    assert server.stop(signal: 0).success? # the call only waits
    refute File.exist?(File.join(@folder, "state"))
  end

  def test_halt
    server = controlled("-S", "state")
    client = TCPSocket.new("127.0.0.1", server.port)
    client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12")
    assert_equal 0, ctl("halt", "-S", "state").code
    assert server.stop(signal: 0).success?
  ensure
    client&.close
  end

  # ---- verbs by signals ----

  def test_verbs_by_pid
    server = start("--pidfile", "pid")
    assert_equal "Command info sent success\n", ctl("info", "-P", "pid").out
    server.wait_for_log(/^    Thread #<Thread:/)
    booted = server.log.bytesize
    assert_equal 0, ctl("restart", "-P", "pid").code
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m, from: booted)
    assert_complaint 1, /stats needs the control server/, ctl("stats", "-P", "pid")
    assert_equal 0, ctl("stop", "-P", "pid").code
    assert_equal Signal.list["TERM"], server.stop(signal: 0).termsig
  end

  def test_start
    reader, writer = IO.pipe
    pid = spawn(BLANK.merge("PORT" => "0", "HOST" => "127.0.0.1"), *RONDO, "ctl", "start", "-S", "state",
                "--control-url", "auto", chdir: @folder, err: writer, out: writer)
    writer.close
    assert reader.each_line.find { |line| line.start_with?("Use Ctrl-C") }
    assert_equal 0, ctl("halt", "-S", "state").code
    assert Process.wait2(pid)[1].success?
  ensure
    reader.close
  end
end
