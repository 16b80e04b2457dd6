# frozen_string_literal: true

# Certificates over their life: renewal under load, restarts, two servers with one folder, external accounts, and an ACME
# server that refuses, is away, or comes back.
# SPDX-License-Identifier: MIT

require "integration/tls/acme_case"

class AcmeLifeTest < AcmeCase
  def wait_for_certificate(server)
    server.wait_for_log(/^- Certificates: certificate for #{NAME} until /)
    eventually("a certificate") { shown }
  end

  def test_a_single_process_and_a_restart
    server = fetching
    wait_for_certificate(server)
    eventually("an answer") { fetch.out.start_with?("https on") }
    from = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/^Use Ctrl-C to stop$/, from: from)
    assert_match(/\Ahttps on /, fetch.out)
    assert_match(%r{\AHTTP/1\.1 308 }, plain("/").out)
    assert_equal 1, pebble.issued
  end

  # Becomes the server, with its two sockets as systemd passes them.
  class Activated < Server
    private

    def command_line(*)
      ["sh", "-c", 'LISTEN_FDS=2 LISTEN_PID=$$ exec "$@"', "sh", *super]
    end
  end

  # Asks port 80 all the time, each time on a connection of its own.
  # @return [Array<String>] what went wrong while the block ran
  def asking_port_80
    stop, failed, count = false, [], 0
    asker = Thread.new do
      until stop
        answer = TCPSocket.open("127.0.0.1", http_port) do |client|
          client.write("GET /a HTTP/1.1\r\nhost: a.example\r\n\r\n")
          client.read
        end
        failed << answer unless answer.include?("\r\nlocation: https://a.example/a\r\n")
        count += 1
      end
    rescue SystemCallError => e
      failed << e.message
    end
    eventually("answers") { count > 5 }
    yield
    before = count
    eventually("answers afterwards") { count > before + 5 || !asker.alive? }
    failed
  ensure
    stop = true
    asker.join
  end

  def restart(server)
    from = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/^Use Ctrl-C to stop$/, from: from)
    server.wait_for_log(/booted in .*phase: \d/, from: from) if server.log.include?("cluster mode")
  end

  def assert_token
    write "state/webroot/.well-known/acme-challenge/token-1", "token-1.hash"
    assert_match(/\r\n\r\ntoken-1\.hash\z/, plain("/.well-known/acme-challenge/token-1").out)
  end

  # Nobody on port 80 notices a restart by exec, however often there is one.
  def test_port_80_over_restarts
    [[], ["-w", "2"]].each do |workers|
      server = fetching(*workers)
      eventually("a certificate") { shown }
      assert_empty(asking_port_80 { 3.times { restart(server) } })
      assert_token
      server.stop
    end
  end

  def test_port_80_over_restarts_with_sockets_of_systemd
    sockets = [https_port, http_port].map { |port| TCPServer.new("127.0.0.1", port) }
    [[], ["-w", "2"]].each do |workers|
      server = Activated.new(nil, binds: [], args: [*words, *workers], env: BLANK.merge(environment),
                                  spawn: { chdir: @folder, 3 => sockets[0].fileno, 4 => sockets[1].fileno })
      @servers << server
      server.wait_for_log(/^Use Ctrl-C to stop$/)
      eventually("a certificate") { shown }
      assert_empty(asking_port_80 { 2.times { restart(server) } })
      assert_token
      assert shown
      server.stop
    end
  ensure
    sockets&.each(&:close)
  end

  # The folder that the server was started in is gone: it cannot become another program, and goes on.
  def test_port_80_over_a_restart_that_fails
    app = File.join(@folder, "app")
    FileUtils.mkdir_p(app)
    File.rename(File.join(@folder, "config.ru"), File.join(app, "config.ru"))
    write "app/rondo.rb", "before_restart { File.rename('../app', '../moved') if File.exist?('bad') }\n"
    storage = ["--tls-storage", File.join(@folder, "state")]
    server = fetching("-w", "1", "-C", "rondo.rb", *storage, env: { "PWD" => app }, spawn: { chdir: app })
    wait_for_certificate(server)
    write "app/bad", ""
    failed = asking_port_80 do
      server.signal("USR2")
      server.wait_for_log(/^! cannot restart: .*No such file/)
    end
    assert_empty failed
    assert_token
    assert shown
  end

  # A certificate that lives for 24 s is renewed when it has 8 left.
  def test_renewal_under_load
    pebble(lifetime: 24)
    server = fetching("-w", "2")
    first = wait_for_certificate(server).serial
    stop, failed = false, []
    load = Thread.new do
      until stop
        result = run_command("curl", "-sSk", "--resolve", "#{NAME}:#{https_port}:127.0.0.1", "https://#{NAME}:#{https_port}/")
        failed << result.err unless result.out.start_with?("https on")
      end
    end
    eventually("another certificate") { (certificate = shown) && certificate.serial != first }
    stop = true
    load.join
    assert_empty failed
  ensure
    stop = true
  end

  # As if the clock were wrong by the life of a certificate: each try orders one, and tries become rare.
  def test_what_is_due_at_once_is_not_ordered_again_and_again
    pebble(lifetime: 1)
    waits = Array.new(2) { renew("--force").out[/due for renewal at once: is the clock right\? Next try in (\d+) s$/, 1].to_i }
    assert_includes 48..72, waits.first
    assert_includes 96..144, waits.last
    assert_match(/tried 2 times in vain: it is due for renewal at once: .*; next try at /, rondo("cert", "status", *words, env: environment).out)
  end

  def test_each_name_has_its_own
    server = fetching(names: "#{NAME},b.example.com".split(","))
    server.wait_for_log(/certificate for b\.example\.com until /)
    eventually("both") { [NAME, "b.example.com"].all? { |name| shown(name)&.to_text.to_s.include?("DNS:#{name}") } }
  end

  # The server asks the wrong port: it finds no token.
  def test_a_token_that_is_not_found
    HeldPort.open do |port|
      @pebble = Pebble.new(port)
      server = fetching
      server.wait_for_log(/^! Certificates: no certificate for #{NAME}: the server did not find the token on port 80: .*refused.*; next try in \d+ s$/)
      assert_match(%r{\AHTTP/1\.1 308 }, plain("/").out)
      assert_empty Dir.children(File.join(@folder, "state/webroot/.well-known/acme-challenge"))
      delays = Array.new(3) { renew.out[/next try in (\d+) s/, 1].to_i }
      assert_equal delays.sort, delays
      assert_operator delays.last, :>, 180
    end
  end

  # Somebody else's token under the same name: a webroot that two programs write to.
  def test_a_wrong_token
    HeldPort.open do |port|
      @pebble = Pebble.new(port)
      other = TCPServer.new("127.0.0.1", port)
      answers = Thread.new do
        loop do
          client = other.accept
          client.readpartial(4096)
          client.write("HTTP/1.0 200 OK\r\n\r\nwrong.answer")
          client.close
        end
      end
      assert_match(/no certificate for #{NAME}: the server did not find the token/, renew.out)
      refute_path_exists stored
    ensure
      answers&.kill
      other&.close
    end
  end

  def test_a_server_that_comes_back
    pebble.kill
    server = fetching("-w", "1")
    server.wait_for_log(/^! Certificates: no certificate for #{NAME}: localhost (?:does not answer|cannot be reached)/)
    assert_nil shown
    pebble.start
    result = renew # by hand, in spite of the delay
    assert_match(/\Acertificate for #{NAME} until /, result.out, result.err)
    server.signal("USR2")
    eventually("a certificate") { shown }
  end

  def test_a_server_that_goes_away_later
    server = fetching("-w", "1")
    wait_for_certificate(server)
    pebble.kill
    assert_match(/no certificate for #{NAME}: localhost (?:does not answer|cannot be reached)/, renew("--force").out)
    assert shown
    assert_match(/valid until .*; tried 1 times in vain: /, rondo("cert", "status", *words, env: environment).out)
  end

  def test_two_servers_with_one_folder
    third = HeldPort.new
    servers = [[], ["--tls-port", third.number.to_s, "--tls-http-port", "0"]].map do |ports|
      start(*words, *ports, binds: [], env: environment)
    end
    servers.each { |server| server.wait_for_log(/^Use Ctrl-C to stop$/) }
    eventually("a certificate") { File.exist?(stored) }
    eventually("both to know") { servers.all? { |server| server.log.match?(/certificate for|another process is renewing|Restarting/) } }
    assert_equal 1, pebble.issued
    assert_equal 1, servers.sum { |server| server.log.scan("certificate for #{NAME} until").size }
  ensure
    third&.close
  end

  def test_external_accounts
    pebble(bound: true)
    assert_match(/no certificate for #{NAME}: the server refuses: /, renew.out)
    assert_match(/tls_eab_kid needs a key/, renew("--tls-eab-kid", "kid-1").out)
    write "key", "#{Pebble::KEYS["kid-1"]}\n"
    assert_match(/\Acertificate for /, renew("--tls-eab-kid", "kid-1", "--tls-eab-key-file", "key").out)
  end

  # The variable reaches the process that needs it, and neither the application nor a worker, also after a restart.
  def test_a_key_that_nobody_else_has
    pebble(bound: true)
    write "config.ru", "run ->(_) { [200, {}, [ENV.to_h.inspect]] }"
    key = Pebble::KEYS["kid-1"]
    server = fetching("-w", "1", "--tls-eab-kid", "kid-1", env: { "RONDO_TLS_EAB_KEY" => key })
    wait_for_certificate(server)
    eventually("an answer") { fetch.out.include?("PATH") }
    refute_includes fetch.out, "TLS_EAB_KEY"
    refute_includes server.log, key
    File.delete(stored)
    from = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/certificate for #{NAME} until /, from: from)
  end

  def test_terms
    assert_match(/wants its terms to be agreed to \(tls_agree\): /, renew("--no-tls-agree").out)
  end

  def test_without_the_gem
    server = start(*words, binds: [], env: environment.merge("RUBYOPT" => "", "BUNDLE_GEMFILE" => "", "GEM_PATH" => @folder, "GEM_HOME" => @folder,
                                                             "RUBYLIB" => $LOAD_PATH.grep(/rack-\d/).join(":")))
    server.wait_for_log(/^! Certificates: no certificate for #{NAME}: the gem acme-client is missing: run `gem install acme-client`/)
  end
end
