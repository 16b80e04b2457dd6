# frozen_string_literal: true

# The control server of real processes: its pages, its access rules, its commands, and its answers while Ruby is stuck.
# SPDX-License-Identifier: MIT

require_relative "control_case"

class ControlServerTest < ControlCase
  # ---- pages ----

  def test_probes_need_no_token_on_this_machine
    server = controlled
    assert_equal ["200", "live\n"], answer(server, "/live", token: nil)
    assert_equal ["200", "ready: 1 of 1\n"], answer(server, "/ready", token: nil)
    %w[/stats /metrics /gc /stop /status /nothing].each do |path|
      assert_equal "403", control(server, path, token: nil).code, path
      assert_equal "403", control(server, path, token: "#{TOKEN}x").code, path
    end
    assert_equal "200", control(server, "/stats?token=#{TOKEN}", token: nil).code
  end

  PUMAS = %w[backlog running pool_capacity busy_threads max_threads requests_count backlog_max reactor_max].freeze

  def test_stats
    server = controlled
    stats = JSON.parse(control(server, "/stats").body)
    assert_empty PUMAS - stats.keys
    assert_match(/\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\z/, stats["started_at"])
    assert_equal RUBY_VERSION, stats.dig("versions", "ruby", "version")
    assert_equal [server.pid, "ready", 0], stats["rondo"].values_at("pid", "state", "generation")
    assert_operator stats["rondo"]["ready_ms"], :>=, stats["rondo"]["started_ms"]
    assert_equal(server.own_urls, stats["accept_queues"].map { |queue| queue["url"] })
  end

  def test_metrics
    response = control(controlled, "/metrics")
    assert_equal "text/plain; version=0.0.4; charset=utf-8", response["content-type"]
    assert_match(/^rondo_workers{state="ready"} 1$/, response.body)
  end

  # Its call is over, and so nothing is busy with it: idle_timeout asks for this number.
  def test_an_open_stream_is_under_way
    write "config.ru", <<~RUBY
      body = proc { |stream| stream.write("begun"); Thread.new { sleep 0.05 until File.exist?("go"); stream.close } }
      run ->(_env) { [200, {}, body] }
    RUBY
    server = controlled
    under_way = -> { control(server, "/metrics").body[/^rondo_under_way\S* (\d+)$/, 1] }
    eventually("nothing") { under_way.call == "0" }
    TCPSocket.open("127.0.0.1", server.port) do |socket|
      socket.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      eventually("the stream") { under_way.call == "1" }
      eventually("the end of the call") { control(server, "/metrics").body.match?(/^rondo_busy\S* 0$/) }
      assert_equal "1", under_way.call
      write "go", ""
      assert_match(/begun/, socket.read)
    end
    eventually("its end") { under_way.call == "0" }
  end

  # ---- while Ruby is stuck ----

  def test_it_answers_while_ruby_is_stuck_in_c
    stuck do |server|
      assert_equal ["200", "live\n"], answer(server, "/live", token: nil)
      assert_equal "200", control(server, "/ready").code
      assert_equal "ready", JSON.parse(control(server, "/stats").body).dig("rondo", "state")
      assert_match(/^rondo_build_info/, control(server, "/metrics").body)
      response = control(server, "/thread-backtraces")
      assert_equal "504", response.code
      assert_match(/Ruby may be stuck/, response.body)
    end
  end

  def test_orders_given_while_ruby_is_stuck_are_carried_out_later
    stuck do |server|
      assert_equal "200", control(server, "/stop").code
      open_gate
      assert server.stop(signal: 0).success? # the call only waits
    end
  end

  def test_it_answers_while_the_application_is_loaded
    write "config.ru", "File.mkfifo('gate')\nwarn 'loading'\nFile.read('gate')\n#{HELLO}"
    reader, writer = IO.pipe
    pid = spawn(BLANK, *RONDO, "-p", "0", "--control-url", "unix:///#{@folder}/c.sock", "--control-token", TOKEN,
                chdir: @folder, err: writer, out: writer)
    writer.close
    assert reader.each_line.find { |line| line == "loading\n" }
    assert_equal ["live\n", 0], ctl("live", *place).then { |result| [result.out, result.code] }
    assert_equal ["not ready: 0 of 1\n", 1], ctl("ready", *place).then { |result| [result.out, result.code] }
    File.write(File.join(@folder, "gate"), "")
    assert(reader.each_line.find { |line| line.start_with?("Use Ctrl-C") })
    assert_equal 0, ctl("ready", *place).code
  ensure
    Process.kill("KILL", pid)
    Process.wait(pid)
    reader.close
  end

  # ---- addresses ----

  def test_an_address_of_other_machines_needs_a_token_of_ones_own
    ["tcp://0.0.0.0:0", "tcp://[::]:0"].each do |uri|
      [[], ["--control-token", "none"], ["--control-token", ""]].each do |words|
        result = rondo("-q", "-b", "tcp://127.0.0.1:0", "--control-url", uri, *words)
        assert_complaint 1, /control server: .*#{Regexp.escape(uri)} can be reached from other machines: set control_token/, result
      end
    end
    server = controlled(uri: "tcp://0.0.0.0:0")
    assert_equal "403", control(server, "/live", token: nil).code # here even the probes
    assert_equal "200", control(server, "/live").code
  end

  def test_addresses_that_cannot_be
    TCPServer.open("127.0.0.1", 0) do |taken|
      { "tcp://127.0.0.1:#{taken.addr[1]}" => /address already in use/, "nonsense" => /expected tcp/,
        "unix:///#{@folder}/nowhere/c.sock" => /No such file/, "ssl://127.0.0.1:0?cert=c&key=k" => /no TLS of its own/,
        "tcp://127.0.0.1:99999" => /above 65535/ }.each do |uri, pattern|
        assert_complaint 1, pattern, rondo("-q", "-b", "tcp://127.0.0.1:0", "--control-url", uri)
      end
    end
    assert_complaint 1, /control_token/, rondo("-q", "--control-url", "auto", "--control-token", "a\"b")
  end

  def test_it_is_checked
    result = rondo("check", "-b", "tcp://127.0.0.1:0", "--control-url", "tcp://127.0.0.1:0")
    assert_match(%r{^ok +control server: tcp://127\.0\.0\.1:\d+$}, result.out)
    result = rondo("check", "-b", "tcp://127.0.0.1:0", "--control-url", "tcp://0.0.0.0:0")
    assert_match(/^failed +control server: \S+ can be reached from other machines/, result.out)
    assert_equal 1, result.code
  end

  def test_a_unix_socket_is_its_owners_alone
    path = File.join(@folder, "c.sock")
    server = controlled("-S", "state", uri: "unix://#{path}")
    assert_equal 0o600, File.stat(path).mode & 0o777
    assert_equal 0o600, File.stat(File.join(@folder, "state")).mode & 0o777
    assert_equal "live\n", ctl("live", "-S", "state").out
    assert server.stop.success?
    refute File.exist?(path), "the socket is left over"
  end

  def test_refused_requests_are_counted_and_said_once
    server = controlled
    3.times { assert_equal "403", control(server, "/publish", token: "wrong", verb: :post).code }
    server.wait_for_log(/^! Control server: a request was refused \(403\): its token is wrong or missing/)
    assert_match(/^rondo_control_refused_total 3$/, control(server, "/metrics").body)
    assert_equal 3, JSON.parse(control(server, "/stats").body)["control_refused"]
    assert_equal 1, server.log.scan("a request was refused").size
  end

  def test_a_random_token_stands_in_the_state_file
    server = controlled("-S", "state", token: nil)
    token = read("state")[/^control_auth_token: "?(\h{32})"?$/, 1]
    assert token, read("state")
    refute_includes server.log, token
    assert_equal "403", control(server, "/stats", token: nil).code
    assert_equal "200", control(server, "/stats", token: token).code
  end

  # Nobody can ask then, so it is said at once. The status page inside the application asks at an address of its own.
  def test_a_random_token_without_a_state_file
    server = controlled(token: nil)
    assert_match(/^\* Control server on \S+ \(its token is random and in no file: name a state file by -S, or choose a token\)$/, server.log)
    assert_match(/^\* Control server on \S+$/, controlled(token: nil, uri: "auto").log)
    assert_match(/^\* Control server on \S+$/, controlled("-S", "state", token: nil).log)
  end

  def test_no_token_where_that_is_asked_for
    server = controlled(token: "none")
    assert_match(/^\* Control server on \S+ without a token$/, server.log)
    assert_equal "200", control(server, "/stats", token: nil).code
    assert_equal "403", control(server, "/stop", { "sec-fetch-site" => "cross-site" }, token: nil).code
  end

  # DNS rebinding: the page's own origin resolves to this machine, and the browser adds only that name in Host.
  def test_a_name_that_leads_here_without_a_token
    server = controlled(token: "none")
    %w[/stats /metrics /thread-backtraces /stop /nothing].each do |path|
      %i[get post].each do |verb|
        assert_equal "403", control(server, path, { "host" => "evil.example" }, token: nil, verb: verb).code, path
      end
    end
    ["localhost", "localhost:1", "127.0.0.1"].each do |host|
      assert_equal "200", control(server, "/stats", { "host" => host }, token: nil).code, host
    end
  end

  # The address of an image is enough for a GET, and a GET need not name its origin.
  def test_verbs_without_a_token_are_no_get
    server = controlled(token: "none")
    %w[stop halt restart reopen-log info gc gc-stats thread-backtraces].each do |verb|
      answer = control(server, "/#{verb}", token: nil)
      assert_equal %w[405 POST], [answer.code, answer["allow"]], verb
    end
    assert_equal "200", control(server, "/gc", token: nil, verb: :post).code
    assert_equal ["Command gc sent success\n", 0], ctl("gc", "--control-url", control_url(server)).then { |done| [done.out, done.code] }
    assert_equal 0, ctl("stop", "--control-url", control_url(server)).code
    server.wait_for_log(/Goodbye!/)
  end

  # As pumactl does it: by GET, with its token, or through a Unix socket with the permissions of its file.
  def test_verbs_by_get
    assert_equal "200", control(controlled, "/gc").code
    server = controlled(uri: "unix://#{File.join(@folder, "open.sock")}", token: "none")
    UNIXSocket.open(XorProxy.front(control_url(server)).delete_prefix("unix://")) do |socket|
      socket.write("GET /gc HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n")
      assert_match %r{\AHTTP/1\.1 200 }, socket.read
    end
  end

  def test_the_configuration_file
    write "config/rondo.rb", "activate_control_app 'auto', auth_token: '#{TOKEN}', data_only: true\n"
    server = start("-S", "state")
    server.wait_for_log(/Use Ctrl-C to stop/)
    assert_match(%r{\Aunix:///.*/rondo-control-#{server.pid}-\h+\.sock\z}, control_url(server))
    assert_equal 0, ctl("gc-stats", "-S", "state").code
    assert_match(/stop not available/, ctl("stop", "-S", "state").err)
    path = control_url(server).delete_prefix("unix://")
    assert server.stop.success?
    refute File.exist?(path)
  end

  def test_nothing_is_left_of_a_server_that_does_not_start
    write "config.ru", "raise 'no'"
    path = File.join(@folder, "c.sock")
    assert_not_loaded(/config\.ru:1: no .*/, rondo("-q", "--control-url", "unix://#{path}"))
    refute File.exist?(path)
  end

  # ---- restart and forks ----

  def test_a_restart_keeps_the_socket
    server = controlled("-S", "state")
    address = control_url(server)
    booted = server.log.bytesize
    assert_equal "200", control(server, "/restart").code
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m, from: booted)
    assert_equal [address] * 2, server.log.scan(/^\* Control server on (\S+)/).flatten
    assert_equal server.pid, JSON.parse(control(server, "/stats").body).dig("rondo", "pid")
    assert_equal server.own_urls * 2, server.log.scan(ServerProcess::LISTENING).flatten
  end

  def test_a_restart_without_the_setting_ends_it
    path = File.join(@folder, "c.sock")
    write "config/rondo.rb", "activate_control_app 'unix://#{path}'\n"
    write "config.ru", "run ->(_env) { [200, {}, [ENV.fetch('RONDO_CONTROL_SOCKET', 'none')]] }"
    server = start
    server.wait_for_log(/Use Ctrl-C to stop/)
    assert_path_exists path
    write "config/rondo.rb", ""
    booted = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m, from: booted)
    refute_path_exists path
    assert_equal "none", get(server).body
  end

  # A child with copies of the descriptors would keep clients waiting for the end of their connections.
  def test_forks_of_the_application_do_not_hold_it
    write "config.ru", <<~RUBY
      run ->(_env) { [200, {}, [fork { $stdin.read; exit! }.to_s]] }
    RUBY
    reader, writer = IO.pipe
    server = controlled(spawn: { in: reader })
    client = TCPSocket.new("127.0.0.1", control_port(server))
    client.write("GET /live HTTP/1.1\r\nHost: a\r\n\r\n")
    assert_match(/200 OK/, client.readpartial(1000))
    get(server) # forks, with that connection open
    client.write("GET /live HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    assert_match(/live\n\z/, Timeout.timeout(PATIENCE) { client.read })
    server.signal("INT")
    eventually("the end of the listening socket") { refused?(control_url(server)[/\d+\z/].to_i) }
    writer.close # the child ends
    assert server.stop(signal: 0).success?
  ensure
    [client, reader, writer].each { |io| io&.close }
  end

  private

  def refused?(port)
    TCPSocket.new("127.0.0.1", port).close
  rescue Errno::ECONNREFUSED
    true
  end

  def answer(server, path, **options)
    control(server, path, **options).then { |response| [response.code, response.body] }
  end

  def place
    ["--control-url", "unix:///#{@folder}/c.sock", "-T", TOKEN]
  end

  def stuck(&block)
    while_stuck(method(:controlled), &block)
  end
end
