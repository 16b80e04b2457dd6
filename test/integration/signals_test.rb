# frozen_string_literal: true

# Signals, restarts with the same sockets, and what systemd hands over and is told.
# SPDX-License-Identifier: MIT

require_relative "shell_case"

class SignalsTest < ShellCase
  # Answers the process id. At /slow it waits until a byte comes through the pipe. Another thread prints a line once it waits.
  WAITING = <<~RUBY
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        # Opened for writing too, so that open does not wait.
        File.open("gate", "r+") { |gate| tell_when_asleep(Thread.current) && gate.read(1) }
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
    def tell_when_asleep(thread) = Thread.new { Thread.pass until thread.stop?; warn("slow began") }
  RUBY

  def setup
    super
    write "config.ru", WAITING
    File.mkfifo(File.join(@folder, "gate"))
  end

  # ---- stopping ----

  def test_int_and_quit_end_well
    %w[INT QUIT].each do |signal|
      server = start
      status = server.stop(signal: signal)
      assert_equal 0, status.exitstatus
      assert_match(/^- Gracefully stopping, waiting for requests to finish\n(?:.*\n)*- Goodbye!\n\z/, server.log)
    end
  end

  def test_term_ends_with_its_own_status
    server = start
    status = server.stop(signal: "TERM")
    assert_equal Signal.list["TERM"], status.termsig
    assert_match(/Goodbye!\n\z/, server.log)
  end

  def test_term_ends_well_where_that_is_asked_for
    write "config/rondo.rb", "raise_exception_on_sigterm false\n"
    assert_equal 0, start.stop(signal: "TERM").exitstatus
  end

  # A thread is started when there is much to do. The signal comes in the middle of that.
  def test_term_while_a_thread_is_made
    script = <<~RUBY
      require "rondo"
      require "net/http"
      signal = Module.new do
        def name=(name)
          Process.kill("TERM", Process.pid) if name == "rondo 2"
          super
        end
      end
      Thread.prepend(signal)
      server = Rondo::Server.new(->(_) { sleep }, min_threads: 1, max_threads: 8)
      address = URI(server.listen("tcp://127.0.0.1:0"))
      Array.new(4) { Thread.new { Net::HTTP.get(address) } }
      server.run
    RUBY
    result = run_command("sh", "-c", 'timeout 20 "$@"; echo $?', "sh", RbConfig.ruby, "-I#{File.join(ROOT, "lib")}",
                         "-e", script)
    assert_equal (128 + Signal.list["TERM"]).to_s, result.out.lines.last&.chomp, result.err
  end

  def test_requests_in_flight_finish
    server = start
    answer = in_flight(server)
    server.signal("INT")
    server.wait_for_log(/Gracefully stopping/)
    server.wait_for_log(/^- Waiting for 1 request, the oldest GET \/slow for \d+\.\d s, at most 30 s; a second Ctrl-C or TERM stops/)
    open_gate
    assert_equal server.pid.to_s, answer.value.body
    assert server.stop(signal: 0).success? # the call only waits
  end

  def test_the_second_signal_forces_the_stop
    server = start
    client = TCPSocket.new("127.0.0.1", server.port)
    # A request whose body never comes: only force ends it before its deadline.
    client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12")
    eventually("the connection") { File.read("/proc/net/tcp").include?(format(":%04X", client.local_address.ip_port)) }
    get(server)
    server.signal("INT")
    server.wait_for_log(/Gracefully stopping/)
    assert server.stop(signal: "INT").success?
    assert_match(/^- Stopping at once$/, server.log)
  ensure
    client&.close
  end

  def test_an_application_that_never_comes_back_is_ended
    write "config/rondo.rb", "after_stopped { warn 'stopped' }\n"
    server = start("--pidfile", "pid")
    in_flight(server)
    2.times { |n| server.signal("TERM") && server.wait_for_log([/Gracefully stopping/, /Stopping at once/][n]) }
    assert_equal Signal.list["TERM"], server.stop(signal: 0).termsig
    assert_ended server
    refute File.exist?(File.join(@folder, "pid")), "the pid file is left over"
  end

  def test_an_application_has_until_the_deadline_of_the_drain
    write "config/rondo.rb", "force_shutdown_after :immediately\nafter_stopped { warn 'stopped' }\n"
    { "INT" => 0, "TERM" => nil }.each do |signal, code|
      server = start
      in_flight(server)
      status = server.stop(signal: signal)
      assert_equal [code, (Signal.list["TERM"] unless code)], [status.exitstatus, status.termsig]
      assert_ended server
    end
  end

  def test_a_restart_does_not_wait_for_an_application_that_never_comes_back
    write "config/rondo.rb", "force_shutdown_after :immediately\n"
    server = start
    in_flight(server)
    restart(server)
    assert_equal server.pid.to_s, get(server).body
  end

  # The watch thread does it without Ruby.
  def test_while_ruby_is_stuck_a_call_that_hangs_is_answered
    write "config/rondo.rb", "hard_request_timeout 2\n"
    File.unlink(File.join(@folder, "gate"))
    while_stuck(method(:start)) do |server, client|
      assert client.wait_readable(PATIENCE), "no answer"
      assert_match(/\AHTTP\/1\.1 503 /, client.read)
      server.wait_for_log(/^! GET \/stuck: \d+\.\d s in the application.*, given up \(503\)$/)
    end
  end

  # ---- signals that print ----

  def test_signals_of_workers_are_answered_with_a_line
    server = start
    { "USR1" => /^USR1: .*needs workers/, "TTIN" => /^TTIN: /, "TTOU" => /^TTOU: / }.each do |name, line|
      server.signal(name)
      server.wait_for_log(line)
    end
    assert_equal server.pid.to_s, get(server).body
  end

  def test_backtraces_of_threads
    server = start
    server.signal(Signal.list.key?("INFO") ? "INFO" : "PWR")
    server.wait_for_log(/^    Thread #<Thread:.*\n +\S+:\d+:in /)
    assert_equal server.pid.to_s, get(server).body
  end

  # ---- logs ----

  def test_hup_opens_redirected_logs_again
    server = start("--redirect-stdout", "out.log", "--redirect-append", "-v", "-b", "tcp://127.0.0.1:0", binds: [])
    port = eventually("the server") { /Listening on \S+:(\d+)/.match(File.exist?(File.join(@folder, "out.log")) ? read("out.log") : "") }[1]
    ask = ->(path) { Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path}")) }
    ask.call("/first")
    eventually("the first line") { read("out.log").include?("/first") }
    File.rename(File.join(@folder, "out.log"), File.join(@folder, "old.log"))
    server.signal("HUP")
    # The file exists a moment before the process writes to it.
    eventually("a new file") { File.identical?("/proc/#{server.pid}/fd/1", File.join(@folder, "out.log")) }
    ask.call("/second")
    eventually("the second line") { read("out.log").include?("/second") }
    refute_includes read("old.log"), "/second"
  end

  def test_hup_stops_where_nothing_is_redirected
    server = start
    assert server.stop(signal: "HUP").success?
    assert_match(/Goodbye/, server.log)
  end

  # ---- restart ----

  def restart(server)
    booted = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m, from: booted)
  end

  def test_a_restart_keeps_process_and_port
    server = start
    restart(server)
    assert_equal server.pid.to_s, get(server).body
    assert_equal [server.url] * 2, server.log.scan(ServerProcess::LISTENING).flatten
    restart(server)
    assert_equal server.pid.to_s, get(server).body
    assert server.stop.success?
  end

  def test_a_restart_reads_the_application_anew
    server = start
    write "config.ru", HELLO
    restart(server)
    assert_equal "hello", get(server).body
  end

  def test_a_restart_keeps_unix_sockets
    path = File.join(@folder, "s.sock")
    server = start(binds: ["tcp://127.0.0.1:0", "unix://#{path}"])
    restart(server)
    UNIXSocket.open(path) do |client|
      client.write("GET / HTTP/1.0\r\n\r\n")
      assert_match(/\AHTTP.*\r\n\r\n#{server.pid}\z/m, client.read)
    end
    server.stop
    refute File.exist?(path), "the socket file is left over"
  end

  def test_nobody_is_refused_during_a_restart
    server = start
    done = Thread::Queue.new
    answers = Thread.new do
      bodies = []
      bodies << get(server).body while done.empty?
      bodies
    end
    restart(server)
    done << true
    assert_equal [server.pid.to_s], answers.value.uniq
  end

  def test_a_restart_waits_for_requests_in_flight
    server = start
    answer = in_flight(server)
    booted = server.log.bytesize
    server.signal("USR2")
    open_gate
    assert_equal server.pid.to_s, answer.value.body
    server.wait_for_log(/Restarting.*Use Ctrl-C/m, from: booted)
  end

  def test_restart_hooks_and_pid_file
    write "config/rondo.rb", "on_restart { |launcher| launcher.log_writer.log('before the restart: ' + launcher.options[:pidfile]) }\n" \
                             "on_restart { raise 'on purpose' }\nafter_stopped { warn 'stopped' }\npidfile 'pid'\n"
    server = start
    restart(server)
    assert_match(/^before the restart: pid$/, server.log)
    assert_match(/^! before_restart raised at .*rondo\.rb:2: on purpose \(RuntimeError\)$/, server.log)
    refute_match(/^stopped$/, server.log)
    assert_equal "#{server.pid}\n", read("pid")
    server.stop
    assert_match(/^stopped$/, server.log)
  end

  def test_a_restart_by_another_command
    write "again", "#!/bin/sh\necho \"again with $*\"\nexec #{RONDO.map { |word| "'#{word}'" }.join(" ")} \"$@\"\n"
    File.chmod(0o755, File.join(@folder, "again"))
    write "config/rondo.rb", "restart_command './again'\n"
    [%w[-w 0], %w[-w 1]].each do |args|
      server = start(*args)
      server.wait_for_log(/Use Ctrl-C/)
      restart(server)
      assert_match(%r{^again with -b tcp://127\.0\.0\.1:0 #{args.join(" ")}$}, server.log)
      assert_equal 1, get(server).body.scan(/\A\d+\z/).size
      server.stop
    end
  end

  def test_what_threads_do_when_a_stop_begins
    write "config/rondo.rb", "shutdown_debug\n"
    [%w[-w 0], %w[-w 1]].each do |args|
      server = start(*args)
      answer = in_flight(server)
      server.signal("INT")
      server.wait_for_log(/^ *Stop begins \(PID: \d+\):\n *Thread .*config\.ru:4:in [`'](?:IO#)?read'/m)
      assert_match(/config\.ru:4:in [`'](?:IO#)?read'/, server.log)
      open_gate
      answer.value
      server.wait_for_log(/Goodbye!/)
      assert_equal 1, server.log.scan("Stop begins").size
    end
  end

  def test_what_threads_do_when_the_time_of_a_stop_is_over
    write "config/rondo.rb", "shutdown_debug on_force: true\nforce_shutdown_after 0.1\n"
    server = start
    answer = in_flight(server)
    server.signal("INT")
    server.wait_for_log(/^ *Time of the stop is over \(PID: \d+\):\n *Thread .*config\.ru:4:in [`'](?:IO#)?read'/m)
    assert_match(/config\.ru:4:in [`'](?:IO#)?read'/, server.log)
    assert_raises(EOFError, SystemCallError) { answer.value }
  end

  def test_output_that_is_buffered
    write "config.ru", "run ->(env) { [200, {}, [$stdout.sync.inspect]] }\n"
    assert_equal "true", get(start).body
    write "config/rondo.rb", "mutate_stdout_and_stderr_to_sync_on_write false\n"
    [%w[-w 0], %w[-w 1]].each { |args| assert_equal "false", get(start(*args)).body }
  end

  def test_touching_tmp_restart_txt_restarts
    write "config/rondo.rb", "plugin :tmp_restart\n"
    server = start
    server.wait_for_log(/Use Ctrl-C/)
    booted = server.log.bytesize
    write "tmp/restart.txt", ""
    server.wait_for_log(/Restarting.*Use Ctrl-C/m, from: booted)
    assert_equal server.pid.to_s, get(server).body
  end

  # A variable that the server sets for the application is not taken for a setting of the user.
  def test_a_restart_says_who_chose_the_environment
    [{}, { "RACK_ENV" => "test" }].each do |env|
      server = start(env: { "RACK_ENV" => nil }.merge(env))
      chosen = server.log[/Environment: .*/]
      restart(server)
      assert_equal [chosen] * 2, server.log.scan(/Environment: .*/)
    end
  end

  # ---- systemd ----

  def test_readiness_is_notified
    path = File.join(@folder, "notify")
    socket = Socket.new(:UNIX, :DGRAM)
    socket.bind(Addrinfo.unix(path))
    server = start(env: { "NOTIFY_SOCKET" => path })
    assert_match(/READY=1/, received(socket))
    server.stop
    assert_match(/STOPPING=1/, received(socket))
  ensure
    socket&.close
  end

  # The shell becomes the server, so that LISTEN_PID is its process.
  ACTIVATED = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@" 3<&"$SOCKET" '

  def test_sockets_of_systemd_are_served
    TCPServer.open("127.0.0.1", 0) do |listening|
      server = activated(listening)
      assert_equal "http://127.0.0.1:#{listening.addr[1]}", server.url
      assert_equal server.pid.to_s, get(server).body
      restart(server)
      assert_equal server.pid.to_s, get(server).body
    end
  end

  # A server behind a shell that passes it a socket.
  class Activated < Server
    private

    def command_line(*)
      ["bash", "-c", ACTIVATED, "bash", *super] # sh knows descriptors of one digit only
    end
  end

  private

  def activated(listening)
    env = BLANK.merge("SOCKET" => listening.fileno.to_s)
    server = Activated.new(nil, binds: ["tcp://127.0.0.1:#{listening.addr[1]}"], args: [], env: env,
                                spawn: { chdir: @folder, listening.fileno => listening.fileno })
    @servers << server
    server
  end

  def in_flight(server)
    answer = Thread.new { get(server, "/slow") }
    answer.report_on_exception = false # if the server ends it, the caller gets the error
    server.wait_for_log(/slow began/)
    answer
  end

  # Every part of the end came after the application was given up.
  def assert_ended(server)
    assert_match(/^- Ended while the application was still working on a request(?: \(1 request, the oldest GET \/slow for \S+ s\))\nstopped\n- Goodbye!\n\z/, server.log)
  end

  def open_gate
    File.open(File.join(@folder, "gate"), "r+") { |gate| gate.write(".") }
  end

  def received(socket)
    assert socket.wait_readable(PATIENCE), "nothing was notified"
    socket.recv(1000)
  end
end
