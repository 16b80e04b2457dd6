# frozen_string_literal: true

# drain_delay: a server that is told to stop is not ready any more, and serves new clients as before, until the delay is
# over or a second signal comes.
# SPDX-License-Identifier: MIT

require_relative "control_case"

class NoticeTest < ControlCase
  NOT_READY = /\Anot ready: \d of \d, and the server is about to stop\n\z/

  # @return [Server]
  def server_with(delay, workers, *words)
    write "config/rondo.rb", "drain_delay #{delay}\n"
    controlled("-w", workers.to_s, *words).tap { |server| eventually("ready") { ready(server).code == "200" } }
  end

  def ready(server)
    control(server, "/ready")
  end

  def assert_notice(server)
    eventually("not ready") { ready(server).code == "503" }
    assert_match NOT_READY, ready(server).body
    assert_equal "200", control(server, "/live").code
    3.times { assert_equal "hello", get(server).body }
  end

  [0, 2].each do |workers|
    # /ready turns first: the server goes on as before.
    define_method("test_a_second_signal_ends_it_#{workers}") do
      server = server_with(600, workers, "--pidfile", "pid")
      server.signal("TERM")
      assert_notice(server)
      assert_path_exists File.join(@folder, "pid")
      assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
      assert_match(/^- Not ready any more; the stop begins in 600 s, or at a second Ctrl-C or TERM$.*^- Gracefully/m, server.log)
      refute_match(/at once/, server.log)
      refute_path_exists File.join(@folder, "pid")
    end

    define_method("test_it_ends_by_itself_#{workers}") do
      server = server_with(0.3, workers)
      assert server.stop(signal: "INT").success?
      assert_match(/^- Not ready .* 0\.3 s, .*^- Gracefully.*^- Goodbye!$/m, server.log)
    end

    define_method("test_a_third_signal_ends_all_#{workers}") do
      write "config.ru", "run ->(env) { warn 'in'; sleep }\n"
      server = server_with(600, workers)
      client = dial_url(server.url)
      client.write("GET / HTTP/1.0\r\n\r\n")
      server.wait_for_log(/^in$/)
      server.signal("TERM")
      server.wait_for_log(/^- Not ready/)
      server.signal("TERM")
      server.wait_for_log(/^- Gracefully/)
      server.stop(signal: "TERM")
      assert_match(/^- Stopping at once$/, server.log)
    end

    define_method("test_by_the_control_server_#{workers}") do
      server = server_with(600, workers)
      control(server, "/stop", verb: :post)
      assert_notice(server)
      control(server, "/halt", verb: :post)
      server.stop
    end

    # It would lose the stop, and begins nothing.
    define_method("test_no_restart_begins_#{workers}") do
      server = server_with(600, workers)
      server.signal("TERM")
      eventually("not ready") { ready(server).code == "503" }
      %w[USR2 USR1].each { |name| server.signal(name) }
      %w[restart refork].each { |verb| control(server, "/#{verb}", verb: :post) }
      assert_notice(server)
      server.stop(signal: "TERM")
      refute_match(/^- (?:Restarting|Starting)/, server.log)
    end

    define_method("test_who_asks_for_more_is_told_so_#{workers}") do
      server = server_with(600, workers, "-S", "state")
      server.signal("TERM")
      eventually("not ready") { ready(server).code == "503" }
      refused(workers).each { |verb, line| assert_refused(server, verb, line) }
      server.signal("USR2")
      server.wait_for_log(/(?:^- No restart: this server stops$.*){#{workers.zero? ? 2 : 3}}/m)
      next if workers.zero?

      server.signal("USR1")
      server.wait_for_log(/(?:^- No restart: this server stops$.*){4}/m)
    end

    define_method("test_so_is_who_asks_without_a_delay_#{workers}") do
      write "config.ru", "run ->(env) { warn 'in'; sleep }\n"
      server = controlled("-w", workers.to_s, "-S", "state")
      client = dial_url(server.url)
      client.write("GET / HTTP/1.0\r\n\r\n")
      server.wait_for_log(/^in$/)
      server.signal("TERM")
      server.wait_for_log(/^- Gracefully/)
      eventually("not ready") { ready(server).code == "503" }
      refused(workers).each { |verb, line| assert_refused(server, verb, line) }
      server.stop(signal: "TERM")
    end
  end

  # @return [Hash{String => String}] verbs and what the log has of them
  def refused(workers)
    return { "restart" => "restart" } if workers.zero?

    { "restart" => "restart", "phased-restart" => "restart", "refork" => "refork",
      "worker-count-up" => "worker was added", "worker-count-down" => "worker was ended" }
  end

  def assert_refused(server, verb, line)
    assert_complaint 1, /the server says: #{verb} is refused: this server stops$/, rondo("ctl", verb, "-S", "state")
    server.wait_for_log(/^- Control server: #{verb}\n- No #{line}: this server stops$/)
  end

  def test_without_it
    write "config/rondo.rb", ""
    server = controlled("-w", "0")
    server.stop
    refute_match(/Not ready/, server.log)
  end

  def test_without_a_control_server
    write "config/rondo.rb", "drain_delay 0.2\n"
    server = start
    server.stop
    assert_match(/^- Not ready .*^- Gracefully/m, server.log)
  end
end
