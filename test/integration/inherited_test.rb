# frozen_string_literal: true

# Sockets from outside and across restarts: abstract names, sockets that systemd owns, its notifications, and signals
# during a restart or a boot.
# SPDX-License-Identifier: MIT

require_relative "shell_case"

class InheritedSocketsTest < ShellCase
  # Reports that it has begun, and answers when the file "go" is there.
  SLOW = <<~RUBY
    run lambda { |env|
      if env["PATH_INFO"] == "/slow"
        warn "slow began"
        IO.select(nil, nil, nil, 0.01) until File.exist?("go")
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY

  # Becomes the server, with a descriptor as systemd passes it, or with an invalid one.
  class Activated < Server
    WRAPPER = 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"'

    private

    def command_line(*)
      ["sh", "-c", WRAPPER, "sh", *super]
    end
  end

  def setup
    super
    write "config.ru", SLOW
  end

  def activated(socket, binds: [], args: [], env: {})
    server = Activated.new(nil, binds: binds, args: args, env: BLANK.merge(env), spawn: { chdir: @folder, 3 => socket.fileno })
    @servers << server
    server.wait_for_log(/Use Ctrl-C to stop/)
    server
  end

  def test_which_sockets_of_systemd_are_served
    TCPServer.open("127.0.0.1", 0) do |given|
      theirs = "http://127.0.0.1:#{given.addr[1]}"
      { [] => 1, %w[--bind-to-activated-sockets] => 2 }.each do |args, count|
        server = activated(given, binds: ["tcp://127.0.0.1:0"], args: args)
        assert_equal count, listening(server).size
        assert_equal count == 2, listening(server).include?(theirs)
        server.stop
      end
      server = activated(given, binds: ["tcp://127.0.0.1:0"], args: %w[--bind-to-activated-sockets=only])
      assert_equal [theirs], listening(server)
      restart(server)
      assert_equal server.pid.to_s, ask(given_client(given))
    end
  end

  def listening(server)
    server.log.scan(ServerProcess::LISTENING).flatten
  end

  def given_client(given)
    TCPSocket.new("127.0.0.1", given.addr[1])
  end

  def restart(server)
    booted = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m, from: booted)
  end

  # The next notification on the socket of NOTIFY_SOCKET.
  def next_word(socket)
    assert socket.wait_readable(PATIENCE), "nothing was notified"
    socket.recv(100)[/\A\w+/]
  end

  def ask(socket)
    socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    socket.read[/\r\n\r\n(.*)\z/m, 1]
  ensure
    socket.close
  end

  def test_abstract_names
    name = "rondo-test-#{Process.pid}"
    server = start(binds: ["unix://@#{name}"])
    assert_equal ["unix://@#{name}"], server.urls
    assert_equal server.pid.to_s, ask(UNIXSocket.new("\0#{name}"))
    restart(server)
    assert_equal server.pid.to_s, ask(UNIXSocket.new("\0#{name}"))
    assert server.stop.success?
  end

  def test_systemd_alone_decides_where_nothing_is_bound
    TCPServer.open("127.0.0.1", 0) do |socket|
      server = activated(socket)
      assert_match(%r{^\* Listening on http://127\.0\.0\.1:#{socket.addr[1]}$}, server.log)
      refute_match(/:9292/, server.log)
      assert_equal server.pid.to_s, ask(TCPSocket.new("127.0.0.1", socket.addr[1]))
    end
  end

  def test_a_socket_of_systemd_that_nobody_binds_is_closed
    TCPServer.open("127.0.0.1", 0) do |socket|
      server = activated(socket, binds: ["tcp://127.0.0.1:0"])
      refute_match(/:#{socket.addr[1]}\b/, server.log)
      inodes = Dir["/proc/#{server.pid}/fd/*"].filter_map { |link| File.readlink(link) rescue nil }
      refute_includes inodes, File.readlink("/proc/self/fd/#{socket.fileno}")
    end
  end

  def test_files_of_systemd_stay_also_after_a_restart
    path = File.join(@folder, "s.sock")
    UNIXServer.open(path) do |socket|
      server = activated(socket)
      restart(server)
      assert_equal server.pid.to_s, ask(UNIXSocket.new(path))
      assert server.stop.success?
      assert File.socket?(path)
    end
  end

  def test_files_of_our_own_go_also_after_a_restart
    path = File.join(@folder, "s.sock")
    server = start(binds: ["unix://#{path}?mode=0600"])
    restart(server)
    restart(server)
    assert_equal server.pid.to_s, ask(UNIXSocket.new(path))
    assert_equal 0o600, File.stat(path).mode & 0o777
    assert server.stop.success?
    refute_path_exists path
  end

  def test_a_descriptor_that_is_no_socket
    reader, writer = IO.pipe
    script = "#{Activated::WRAPPER} 3<&0"
    out, err, status = Open3.capture3(BLANK, "sh", "-c", script, "sh", *RONDO, "-q", chdir: @folder)
    assert_equal ["", 1], [out, status.exitstatus]
    assert_match(/\Arondo: descriptor 3 of LISTEN_FDS is not a listening socket\n\z/, err)
  ensure
    [reader, writer].each { |io| io&.close }
  end

  def test_systemd_is_told_of_a_restart
    path = File.join(@folder, "notify")
    socket = Socket.new(:UNIX, :DGRAM)
    socket.bind(Addrinfo.unix(path))
    server = start(env: { "NOTIFY_SOCKET" => path })
    told = [next_word(socket)]
    restart(server)
    server.stop
    3.times { told << next_word(socket) }
    assert_equal %w[READY RELOADING READY STOPPING], told
  ensure
    socket&.close
  end

  def test_a_restart_before_it_is_ready
    path = File.join(@folder, "notify")
    socket = Socket.new(:UNIX, :DGRAM)
    socket.bind(Addrinfo.unix(path))
    write "config/rondo.rb", "after_booted { sleep 0.005 until File.exist?('go') }\n"
    server = start(env: { "NOTIFY_SOCKET" => path })
    server.signal("USR2")
    assert_equal "RELOADING", next_word(socket)
    write "go", ""
    server.wait_for_log(/Use Ctrl-C to stop.*Use Ctrl-C to stop/m)
    server.stop
    assert_equal %w[READY STOPPING], Array.new(2) { next_word(socket) }
  ensure
    socket&.close
  end

  def test_a_restart_repeats_words_and_folder
    write "shop/config.ru", SLOW
    server = start("--dir", "shop", "--pidfile", "server.pid", "--tag", "shop")
    2.times { restart(server) }
    assert_equal "#{server.pid}\n", read("shop/server.pid")
    assert_equal server.pid.to_s, get(server).body
    assert_match(%r{\Arondo \S+ \(tcp://127\.0\.0\.1:#{server.port}\) \[shop\]}, File.read("/proc/#{server.pid}/cmdline"))
  end

  def test_a_name_with_several_addresses_restarts
    server = start(binds: ["tcp://localhost:0"])
    server.wait_for_log(/Use Ctrl-C to stop/)
    urls = server.log.scan(ServerProcess::LISTENING).flatten
    restart(server)
    assert_equal urls * 2, server.log.scan(ServerProcess::LISTENING).flatten
    assert_equal server.pid.to_s, ask(TCPSocket.new("localhost", server.port))
  end

  def test_a_stop_wins_over_a_restart_under_way
    server = start
    request = Thread.new { get(server, "/slow") }
    server.wait_for_log(/slow began/)
    server.signal("USR2")
    server.signal("INT")
    server.wait_for_log(/Gracefully stopping/)
    write "go", ""
    assert_equal "200", request.value.code
    assert server.stop(signal: 0).success?
    refute_match(/Restarting/, server.log)
  end

  # Clients do not wait for a program that does not come.
  def test_a_stop_that_wins_over_a_restart_leaves_its_addresses
    path = File.join(@folder, "s.sock")
    server = start(binds: ["tcp://127.0.0.1:0", "unix://#{path}"], env: notified)
    while_a_stop_wins(server, "TERM") do
      eventually("a closed socket") { refused? { TCPSocket.new("127.0.0.1", server.own_port) } }
      eventually("no file") { !File.exist?(path) }
    end
  end

  def test_a_stop_that_wins_over_a_restart_leaves_files_of_others
    path = File.join(@folder, "s.sock")
    UNIXServer.open(path) do |socket|
      server = activated(socket, binds: ["tcp://127.0.0.1:0"], args: %w[--bind-to-activated-sockets], env: notified)
      while_a_stop_wins(server, "INT") do
        eventually("a closed socket") { refused? { TCPSocket.new("127.0.0.1", server.own_port) } }
      end
      assert File.socket?(path)
    end
  end

  # @return [Hash{String => String}] variables of a server that notifies this test
  def notified
    path = File.join(@folder, "notify")
    @sockets << @notified = Socket.new(:UNIX, :DGRAM)
    @notified.bind(Addrinfo.unix(path))
    { "NOTIFY_SOCKET" => path }
  end

  # Yields while a request is inside that the server waits for.
  def while_a_stop_wins(server, signal)
    request = Thread.new { get(server, "/slow") }
    server.wait_for_log(/slow began/)
    server.signal("USR2")
    nil until next_word(@notified) == "RELOADING"
    server.signal(signal)
    server.wait_for_log(/Gracefully stopping/)
    yield
    write "go", ""
    assert_equal "200", request.value.code
    server.wait_for_log(/^- Goodbye!$/)
    refute_match(/Restarting/, server.log)
  end

  def refused?
    yield.close
    false
  rescue Errno::ECONNREFUSED
    true
  end

  def test_usr2_may_be_left_alone
    server = start(env: { "PUMA_SKIP_SIGUSR2" => "1" })
    assert_equal Signal.list["USR2"], server.stop(signal: "USR2").termsig
  end

  def test_interrupted_at_boot
    write "config.ru", "warn 'loading'\nIO.select(nil, nil, nil, 60)\n"
    Open3.popen3(BLANK, *RONDO, chdir: @folder) do |_, _, err, waiter|
      line = err.gets until line == "loading\n"
      Process.kill("INT", waiter.pid)
      refute_match(/:in [`']/, err.read)
      assert_equal 130, waiter.value.exitstatus
    end
  end
end
