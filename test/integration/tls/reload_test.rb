# frozen_string_literal: true

# New certificates without a restart: asked for by a signal, by `rondo ctl` or by their files; in one process and in
# all workers; and what cannot be used.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "pty"
require "shellwords"

class TLSReloadTest < TLSCase
  RELOADS = Integer(ENV.fetch("RONDO_TEST_RELOADS", "10"))

  # Other bytes in the same files, whole at any time.
  def replace(pair)
    File.rename(pair.certificate, @pair.certificate)
    File.rename(pair.key, @pair.key)
  end

  def shown(server)
    name = nil
    connect(server) { |client| name = client.peer_cert.subject.to_a.first[1] }
    name
  end

  # Of as many new connections as there are workers several times over.
  def wait_until_all_show(server, name)
    Timeout.timeout(PATIENCE) { sleep 0.01 until Array.new(20) { shown(server) }.all?(name) }
  end

  def reload(server, name, &block)
    from = server.log.bytesize
    replace(@certificates.pair(name))
    block.call
    line = server.wait_for_log(/^- Certificates reloaded: localhost until \d{4}-\d\d-\d\d$/, from: from)
    wait_until_all_show(server, name)
    line
  end

  def ask(client)
    client.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n")
    client.readpartial(4096)
  end

  def test_one_process
    server = secure("--control-url", "unix://#{@folder}/control", "--control-token", "none")
    connect(server) do |client|
      assert_match(/ 200 /, ask(client))
      reload(server, "by-hup") { server.signal("HUP") }
      reload(server, "by-ctl") { ctl("reload-certs") }
      reload(server, "by-usr1") { server.signal("USR1") }
      assert_match(/ 200 /, ask(client))
      assert_equal "server", client.peer_cert.subject.to_a.first[1]
    end
    refute_match(/Goodbye/, server.log)
  end

  def ctl(verb)
    result = rondo("ctl", verb, "--control-url", "unix://#{@folder}/control", "--control-token", "none")
    assert_equal 0, result.code, result.err
  end

  def test_all_workers_and_those_that_come_later
    server = secure("-w", "2", "--control-url", "unix://#{@folder}/control", "--control-token", "none")
    server.wait_for_log(/(booted in.*){2}/m)
    connect(server) do |client|
      assert_match(/ 200 /, ask(client))
      reload(server, "by-hup") { server.signal("HUP") }
      reload(server, "by-ctl") { ctl("reload-certs") }
      assert_match(/ 200 /, ask(client))
    end
    Process.kill("KILL", Integer(curl(server, "/pid").out))
    server.wait_for_log(/(booted in.*){3}/m)
    wait_until_all_show(server, "by-ctl")
    reload(server, "by-usr1") { server.signal("USR1") }
    server.wait_for_log(/(phase: 1.*){2}/m)
    wait_until_all_show(server, "by-usr1")
  end

  # Takes ten seconds, so only the long run has it.
  if RELOADS >= 100
    def test_a_changed_file_is_enough
      [secure, secure("-w", "2")].each do |server|
        server.wait_for_log(/(booted in.*){2}/m) if server.log.include?("cluster mode")
        from = server.log.bytesize
        replace(@certificates.pair("by-itself"))
        server.wait_for_log(/Certificates reloaded/, from: from)
        wait_until_all_show(server, "by-itself")
      end
    end
  end

  # The next program must not end because somebody has written half of what it reads.
  def test_half_a_pair_at_a_restart_by_exec
    [secure, secure("-w", "1")].each do |server|
      server.wait_for_log(/booted in/) if server.log.include?("cluster mode")
      File.rename(@certificates.pair("half").certificate, @pair.certificate)
      from = server.log.bytesize
      server.signal("USR2")
      server.wait_for_log(/stay as they are: \S+ is not the key of.*Use Ctrl-C/m, from: from)
      assert_equal "server", shown(server)
      @pair = @certificates.pair("server")
    end
  end

  # Half of the requests come on connections of their own.
  def load_until(server, stop)
    Thread.new do
      failures = []
      until stop.closed?
        begin
          connect(server) { |client| 2.times { failures << "no answer" unless ask(client).include?(" 200 ") } }
        rescue StandardError => e
          failures << e.message
        end
      end
      failures
    end
  end

  def test_no_request_fails_meanwhile
    server = secure("-w", "2")
    server.wait_for_log(/(booted in.*){2}/m)
    stop = Thread::Queue.new
    clients = Array.new(2) { load_until(server, stop) }
    pairs = Array.new(2) { |number| @certificates.pair("turn-#{number}") }
    texts = pairs.map { |pair| [pair.certificate, pair.key].map { |path| File.read(path) } }
    RELOADS.times do |number|
      [@pair.certificate, @pair.key].zip(texts[number % 2]) { |path, text| File.write(path, text) }
      from = server.log.bytesize
      server.signal("HUP")
      server.wait_for_log(/Certificates reloaded/, from: from)
    end
    stop.close
    assert_empty clients.flat_map(&:value)
  end

  # Both come as HUP.
  def test_a_terminal_that_is_closed_still_stops_the_server
    PTY.spawn(BLANK, *RONDO, "-b", "ssl://127.0.0.1:0?#{@pair.query}", chdir: @folder) do |terminal, keys, pid|
      read_until(terminal, /Use Ctrl-C/)
      Process.kill("HUP", pid)
      read_until(terminal, /Certificates reloaded/)
      [terminal, keys].each(&:close)
      assert_equal pid, Timeout.timeout(PATIENCE) { Process.wait(pid) }
    ensure
      Process.kill("KILL", pid) unless Process.last_status&.pid == pid
    end
  end

  # bash sends HUP first, and takes the terminal with it a moment later.
  def test_a_shell_that_ends_stops_the_server
    [[], ["-w", "1"]].each_with_index do |workers, number|
      log = File.join(@folder, "log-#{number}")
      words = [*RONDO, "-b", "ssl://127.0.0.1:0?#{@pair.query}", *workers].shelljoin
      PTY.spawn(BLANK, "bash", "--login", "--noprofile", "--norc", "-i", "-O", "huponexit", chdir: @folder) do |terminal, keys, pid|
        drain = Thread.new { loop { terminal.readpartial(4096) } rescue nil }
        keys.puts "#{words} > #{log} 2>&1 &"
        eventually("the server") { File.exist?(log) && File.read(log).include?("Use Ctrl-C") }
        keys.puts "exit"
        eventually("its end") { File.read(log).include?("Goodbye") }
        assert_equal pid, Process.wait(pid)
      ensure
        drain&.kill
        File.read(log)[/PID: (\d+)/, 1]&.then { |server| end_if_alive(Integer(server)) }
      end
    end
  end

  def end_if_alive(pid)
    Process.kill("KILL", pid)
  rescue Errno::ESRCH
    nil
  end

  def read_until(io, pattern)
    text = +""
    Timeout.timeout(PATIENCE) { text << io.readpartial(4096) until text.match?(pattern) }
  end

  def test_listeners_with_the_same_words_share_what_they_show
    server = start("--control-url", "unix://#{@folder}/control", "--control-token", "none",
                   binds: ["ssl://127.0.0.1:0?#{@pair.query}"] * 2)
    ports = server.log.scan(%r{Listening on https://127\.0\.0\.1:(\d+)$}).flatten.uniq
    assert_equal 2, ports.size
    replace(@certificates.pair("shared"))
    ctl("reload-certs")
    server.wait_for_log(/Certificates reloaded: localhost until \S+$/)
    ports.each do |port|
      result = run_command("openssl", "s_client", "-connect", "127.0.0.1:#{port}")
      assert_match(/subject=CN ?= ?shared/, result.out)
    end
  end

  def test_what_cannot_be_used
    server = secure("-w", "1")
    server.wait_for_log(/booted in/)
    other = @certificates.pair("other")
    File.rename(other.certificate, @pair.certificate) # half a pair
    from = server.log.bytesize
    server.signal("HUP")
    server.wait_for_log(/^! Certificates of \S+ stay as they are: \S+ is not the key of \S+$/, from: from)
    assert_equal "server", shown(server)
    File.rename(other.key, @pair.key)
    server.signal("HUP")
    server.wait_for_log(/Certificates reloaded/, from: from)
    wait_until_all_show(server, "other")
  end
end
