# frozen_string_literal: true

# Processes that stop and continue, crowds of idle clients, one descriptor too many: clients get at worst a late answer,
# and always an answer.
# RONDO_TEST_IDLE is the number of idle connections during a restart.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterChaosTest < ClusterCase
  IDLE = ENV.fetch("RONDO_TEST_IDLE", "300").to_i
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"

  def setup
    super
    @halted = []
  end

  def teardown
    @halted.each { |pid| send_signal("CONT", pid) }
    super
  end

  def dial(server)
    TCPSocket.new("127.0.0.1", server.port).tap { |socket| @sockets << socket }
  end

  def send_signal(name, pid)
    Process.kill(name, pid)
  rescue Errno::ESRCH
    nil
  end

  # The block runs while the process is stopped.
  def without(pid)
    @halted << pid
    halt(pid)
    yield
  ensure
    send_signal("CONT", pid)
  end

  def answer_on(socket)
    socket.wait_readable(PATIENCE) or flunk "no answer"
    text = +""
    text << socket.readpartial(4096) until text.match?(/\r\n\r\n\d+\z/)
    text
  rescue EOFError
    flunk "closed after #{text.inspect}"
  end

  def test_a_master_or_mold_that_stops_for_a_while_is_not_missed
    server = cluster
    load = load_on(server)
    [server.pid, mold(server)].each { |pid| without(pid) { load.more(100) } }
    load.more(20)
    assert_empty load.stop
    assert_equal 2, workers(server).size
  end

  def test_what_a_worker_that_stops_for_a_while_has_is_served_later
    server = cluster
    sockets = Array.new(20) { dial(server) }
    sockets.each { |socket| socket.write(GET) && answer_on(socket) }
    without(workers(server).fetch(0)) do
      sockets.concat(Array.new(20) { dial(server) })
      sockets.each { |socket| socket.write(GET) }
      eventually("answers of the other one") { sockets.count { |socket| socket.wait_readable(0) } > 5 }
    end
    sockets.each { |socket| assert_match(%r{\AHTTP/1.1 200 }, answer_on(socket)) }
  end

  # Afterwards a new worker serves each of them, whatever the kind of restart, and no client notices.
  %w[USR1 USR2].each do |signal|
    define_method("test_idle_connections_go_on_after_a_restart_by_#{signal}") do
      skip "needs connections that can move" unless XorProxy.moves?
      server = cluster
      idle = Array.new(IDLE) { dial(server) }
      idle.each { |socket| socket.write(GET) && answer_on(socket) }
      load = load_on(server)
      old = workers(server).values
      server.signal(signal)
      wait_for_end_of(*old)
      new = idle.map { |socket| socket.write(GET) && answer_on(socket)[/\d+\z/].to_i }
      assert_equal workers(server).values.sort, new.uniq.sort
      assert_in_delta IDLE / 2, new.count(new.first), IDLE / 10
      load.more(20)
      assert_empty load.stop
    end
  end

  # More clients than a worker has descriptors: they wait in the kernel's queue until others leave.
  def test_more_clients_than_descriptors
    server = cluster(spawn: { rlimit_nofile: 200 })
    # At once: a client that sends nothing for a second may have to make room.
    sockets = Array.new(400) { dial(server).tap { |s| s.write(GET.sub("Host", "Connection: close\r\nHost")) } }
    sockets.each { |socket| assert_match(%r{\AHTTP/1.1 200 }, answer_on(socket)) }
    refute_match(/Too many open files/, server.log)
  end
end
