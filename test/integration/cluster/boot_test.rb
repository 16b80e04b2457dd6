# frozen_string_literal: true

# How a cluster starts: how many workers and why, which process is the parent of which, what they listen on, and what
# happens when it cannot start.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"

class ClusterBootTest < ClusterCase
  def test_the_boot_block
    server = cluster
    [/^Rondo starting in cluster mode\.\.\.$/, /^\* Rondo version: \d/, /^\*   Master PID: #{server.pid}$/,
     /^\*      Workers: 2 \(command line\)$/, /^\*     Restarts: .* hot .* phased/, /^\* Preloading application$/,
     /^\* Listening on http:/, /^Use Ctrl-C to stop$/].each { |line| server.wait_for_log(line) }
  end

  def test_the_number_and_who_said_so
    assert_match(/Workers: 1 \(WEB_CONCURRENCY\)$/, cluster_of("WEB_CONCURRENCY" => "1"))
    assert_match(/Workers: \d+ \(auto, by WEB_CONCURRENCY: CPUs/, cluster_of("WEB_CONCURRENCY" => "auto"))
    write "config/rondo.rb", "workers 1\ncluster { tag 'with' }\nsingle { tag 'without' }"
    assert_match(/Workers: 1 \(rondo\.rb\)$/, cluster_of("WEB_CONCURRENCY" => "3"))
    assert_match(/single mode/, start("-w", "0").log)
  end

  def test_numbers_that_are_none
    assert_complaint 1, /workers \(command line\) must be auto or a number up to 256, not 1000/, rondo("-w", "1000")
    assert_complaint 1, /WEB_CONCURRENCY must be a number/, rondo(env: { "WEB_CONCURRENCY" => "few" })
  end

  def test_workers_and_mold_are_children_of_the_master
    server = cluster
    pids = workers(server).values
    assert_equal [*pids, mold(server)].sort, children(server.pid).sort
    assert_equal "rondo: cluster worker 0: #{server.pid} [#{File.basename(@folder)}]", title(workers(server).fetch(0))
    assert_equal "rondo #{Rondo::VERSION} (tcp://127.0.0.1:#{server.own_port}) [#{File.basename(@folder)}]", title(server.pid)
    assert_includes pids.map(&:to_s), get(server).body
  end

  def test_the_master_does_not_load_the_application
    write "config.ru", "warn \"loaded in \#{Process.pid}\"\n#{APP}"
    server = cluster
    refute_match(/^loaded in #{server.pid}$/, server.log)
    assert_equal ["loaded in #{mold(server)}"], server.log.scan(/^loaded in \d+$/)
  end

  def test_without_preloading_each_worker_loads
    write "config.ru", "warn \"loaded in \#{Process.pid}\"\n#{APP}"
    write "config/rondo.rb", "preload_app! false\n"
    server = cluster
    assert_equal workers(server).values.sort, server.log.scan(/^loaded in (\d+)$/).flatten.map(&:to_i).sort
    refute_match(/Preloading/, server.log)
  end

  # ---- sockets ----

  def test_each_worker_has_a_socket_of_its_own
    server = cluster(workers: 3)
    inodes = workers(server).values.map { |pid| listening_inodes(pid, server.own_port) }
    assert_equal [1, 1, 1], inodes.map(&:size)
    assert_equal 3, inodes.uniq.size
    assert_equal inodes.flatten.sort, listening_inodes(server.pid, server.own_port).sort
    eventually("a mold without any") { listening_inodes(mold(server), server.own_port).empty? } # it may still close them
  end

  def test_a_port_in_use_is_an_error_also_when_a_cluster_holds_it
    server = cluster
    result = rondo("-q", "-w", "2", "-b", "tcp://127.0.0.1:#{server.own_port}")
    assert_complaint 1, /:#{server.own_port}: address already in use by process \d+ /, result
    assert_complaint 1, /already in use/, rondo("-q", "-b", "tcp://127.0.0.1:#{server.own_port}")
    TCPServer.open("127.0.0.1", 0) do |taken|
      assert_complaint 1, /already in use/, rondo("-q", "-w", "1", "-b", "tcp://127.0.0.1:#{taken.addr[1]}")
    end
  end

  def test_several_addresses_also_unix
    path = File.join(@folder, "s.sock")
    server = cluster(binds: ["tcp://127.0.0.1:0", "unix://#{path}?mode=0600", "tcp://localhost:0"])
    assert_equal server.urls.uniq, server.urls
    assert_equal 0o600, File.stat(path).mode & 0o777
    assert_includes workers(server).values.map(&:to_s), ask(UNIXSocket.new(XorProxy.front_path(path)))
    server.stop
    refute_path_exists path
  end

  # Becomes the server, with a descriptor as systemd passes it.
  class Activated < Server
    private

    def command_line(*)
      ["sh", "-c", 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"', "sh", *super]
    end
  end

  def test_sockets_of_systemd_are_shared
    TCPServer.open("127.0.0.1", 0) do |socket|
      server = Activated.new(nil, binds: [], args: %w[-w 2], env: BLANK, spawn: { chdir: @folder, 3 => socket.fileno })
      @servers << server
      wait_for_workers(server, 2)
      assert_includes workers(server).values.map(&:to_s), ask(TCPSocket.new("127.0.0.1", XorProxy.front_port(socket.addr[1])))
      old = workers(server).values
      after_signal(server, "USR2", /Restarting\.\.\.$.*(booted in.*){2}/m)
      wait_for_end_of(*old)
      assert_includes workers(server).values.map(&:to_s), ask(TCPSocket.new("127.0.0.1", XorProxy.front_port(socket.addr[1])))
    end
  end

  # ---- errors at the start ----

  def test_an_application_that_raises
    write "config.ru", "\nraise 'no database'\n"
    expected = /config\.ru:2: no database \(RuntimeError\), at `raise 'no database'`/
    assert_not_loaded expected, rondo("-q", "-w", "2")
    write "config/rondo.rb", "preload_app! false\n"
    assert_not_loaded expected, rondo("-q", "-w", "1", "-b", "tcp://127.0.0.1:0")
  end

  def test_hooks_that_raise
    %w[before_fork before_worker_fork before_worker_boot].each do |hook|
      write "config/rondo.rb", "\n#{hook} { raise 'not today' }\n"
      assert_complaint 1, %r{#{hook} raised at config/rondo\.rb:2: not today}, rondo("-q", "-w", "2", "-b", "tcp://127.0.0.1:0")
    end
  end

  def test_no_application
    File.delete(File.join(@folder, "config.ru"))
    assert_complaint 1, /no application: config\.ru does not exist/, rondo("-q", "-w", "2")
  end

  def test_a_signal_while_the_application_is_loaded
    write "config.ru", "warn 'loading'\nsleep\n"
    Open3.popen3(BLANK, *RONDO, "-w", "2", chdir: @folder) do |_, out, err, waiter|
      line = err.gets until line == "loading\n"
      Process.kill("INT", waiter.pid)
      assert_match(/Goodbye/, out.read)
      assert_equal 0, waiter.value.exitstatus
    end
  end

  private

  def cluster_of(env)
    server = start(env: env)
    server.wait_for_log(/booted in/)
    log = server.log
    server.stop
    log
  end

  def listening_inodes(pid, port)
    wanted = File.readlines("/proc/net/tcp").map(&:split).select { |row| row[1].end_with?(format(":%04X", port)) && row[3] == "0A" }
    Dir["/proc/#{pid}/fd/*"].filter_map { |link| File.readlink(link)[/socket:\[(\d+)\]/, 1] rescue nil }.uniq & wanted.map { |row| row[9] }
  end

  def ask(socket)
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    socket.read[/\r\n\r\n(.*)\z/m, 1]
  ensure
    socket.close
  end
end
