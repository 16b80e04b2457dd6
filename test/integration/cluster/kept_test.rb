# frozen_string_literal: true

# Clients that keep their connections and never send a request twice, in every way in which a worker leaves: each
# request is answered. The client is the one of bench/restarts.rb.
# RONDO_TEST_RESTARTS is the number of restarts of each kind.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require_relative "../../../bench/restarts"

class ClusterKeptTest < ClusterCase
  RESTARTS = ENV.fetch("RONDO_TEST_RESTARTS", "4").to_i
  CLIENTS = 16
  # A connection that cannot move is closed after this time without a request, and the proxy in front of the server may
  # hold a request for longer than the default when it gets no CPU.
  GRACE = XorProxy.moves? ? "" : "idle_grace_ms 5000\n"
  PEER = <<~'RUBY'
    run ->(env) { [200, { "content-type" => "text/plain" }, ["#{env["REMOTE_ADDR"]} #{Process.pid}"]] }
  RUBY

  def setup
    super
    Bench::Programs.build
    write "config/rondo.rb", GRACE
    @clients = []
  end

  def teardown
    @clients.each(&:stop)
    super
  end

  def clients(target, *words)
    Bench::RestartClient.new(target, "-c", CLIENTS.to_s, *words).tap { |client| @clients << client }
  end

  # Sends requests before, during and after each restart; none is lost.
  # @return [Hash{String => Integer}] the client's counts
  def through(client, times = RESTARTS, &block)
    sum = Hash.new(0)
    times.times do |number|
      add(sum, client.more(CLIENTS * 5))
      block.call(number)
    end
    add(sum, client.more(CLIENTS * 5))
    add(sum, @clients.delete(client).stop)
    assert_empty Bench::RestartClient.lost(sum)
    sum
  end

  # The answer on a connection that cannot move says that it is the last one, and the client uses a new connection.
  def assert_kept(closed)
    assert_equal 0, closed if XorProxy.moves?
  end

  def add(sum, counts)
    sum.merge!(counts) { |_, one, other| one + other }
  end

  # ---- every way to leave ----

  %w[USR1 USR2].each do |signal|
    define_method("test_#{signal}") do
      server = cluster
      sum = through(clients(server.port)) { restart(server, signal) }
      assert_kept sum["closed"] + sum["closed_idle"]
    end

    define_method("test_#{signal}_while_requests_come_in_halves") do
      server = cluster("-t", "2")
      sum = through(clients(server.port, "--mixed")) { restart(server, signal) }
      assert_kept sum["closed"] + sum["closed_idle"] + sum["behind_close"]
    end
  end

  def test_one_less_and_one_more
    server = cluster(workers: 3)
    sum = through(clients(server.port)) do
      leaving = workers(server).fetch(2)
      server.signal("TTOU")
      wait_for_end_of(leaving)
      after_signal(server, "TTIN", /^- Worker 2 .*booted/)
    end
    assert_kept sum["closed"]
  end

  def test_workers_that_are_replaced
    write "config/rondo.rb", "#{GRACE}max_age 1\nrecycle_jitter 0\nworker_check_interval 1\n"
    server = cluster
    sum = through(clients(server.port), 1) do
      first = workers(server).values
      wait_for_end_of(*first)
    end
    assert_kept sum["closed"]
  end

  def test_a_worker_that_somebody_stops
    server = cluster
    sum = through(clients(server.port)) do |number|
      from = server.log.bytesize
      Process.kill("TERM", workers(server).fetch(number % 2))
      server.wait_for_log(/^- Worker #{number % 2} .*booted/, from: from)
    end
    assert_kept sum["closed"]
  end

  def test_unix_sockets
    path = File.join(@folder, "s.sock")
    server = cluster(binds: ["tcp://127.0.0.1:0", "unix://#{path}"])
    sum = through(clients("unix:#{XorProxy.front_path(path)}")) { |number| restart(server, %w[USR1 USR2][number % 2]) }
    assert_kept sum["closed"]
  end

  # Slow clients: they send nothing while the others move, and send a request afterwards.
  def test_clients_that_take_their_time
    server = cluster
    sum = through(clients(server.port, "--pause", "20")) { restart(server, "USR1") }
    assert_kept sum["closed"] + sum["closed_idle"]
  end

  def test_application_threads_that_answer_while_the_loop_sleeps
    write "config.ru", "run ->(_) { sleep 0.002; [200, {}, [Process.pid.to_s]] }"
    server = cluster("-t", "4")
    sum = through(clients(server.port)) { |number| restart(server, %w[USR1 USR2][number % 2]) }
    assert_kept sum["closed"]
  end

  # ---- no worker to take them ----

  def test_one_worker
    server = cluster(workers: 1)
    sum = through(clients(server.port)) { restart(server, "USR1") }
    assert_kept sum["closed"] # its successor is there by then
  end

  # A client that does not run for the default grace of 250 ms finds its connection closed.
  def test_a_single_process
    write "config/rondo.rb", "idle_grace_ms 5000\n"
    server = start
    through(clients(server.port, "--mixed")) { after_signal(server, "USR2", /Use Ctrl-C to stop/) }
  end

  # A request within the grace period is answered, and the answer says that it is the last one.
  def test_a_stop
    write "config/rondo.rb", "idle_grace_ms 60_000\n"
    [0, 2].each do |workers|
      server = workers.zero? ? start : cluster(workers: workers)
      idle = Array.new(4) { TCPSocket.new("127.0.0.1", server.port) }
      idle.each { |socket| ask(socket) }
      server.signal("INT")
      eventually("a server that does not listen") { listening_sockets(server).zero? }
      idle.each { |socket| assert_match(/^connection: close/, ask(socket)) }
      assert server.stop(signal: 0).success?
    end
  end

  # ---- the identity of clients ----

  def ask(socket, text = "")
    socket.write("#{text}GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    head = socket.gets("\r\n\r\n") or flunk "no answer"
    head + socket.read(head[/^content-length: (\d+)/i, 1].to_i)
  end

  def test_addresses_behind_the_proxy_protocol_stay
    skip "needs a client that sends a PROXY header before the handshake, and the XOR proxy sends none" if XorProxy.on?
    write "config.ru", PEER
    write "config/rondo.rb", "proxy_protocol_from ['127.0.0.1']\n"
    server = cluster
    known = TCPSocket.new("127.0.0.1", server.port)
    half = TCPSocket.new("127.0.0.1", server.port)
    assert_match(/^192\.0\.2\.7 /, ask(known, "PROXY TCP4 192.0.2.7 192.0.2.1 1234 80\r\n"))
    half.write("PROXY TCP4 192.0.2.8 192.0.2.1 12")
    %w[USR1 USR2].each do |signal|
      restart(server, signal)
      assert_match(/^192\.0\.2\.7 /, ask(known))
    end
    assert_match(/^192\.0\.2\.8 /, ask(half, "34 80\r\n"))
    [known, half].each { |socket| assert_includes workers(server).values, ask(socket)[/\d+\z/].to_i }
  end

  def test_trusted_proxies_stay_trusted
    skip "needs connections that can move" unless XorProxy.moves?
    write "config.ru", PEER
    write "config/rondo.rb", "trusted_proxies ['127.0.0.1']\n"
    server = cluster
    proxy = TCPSocket.new("127.0.0.1", server.port)
    2.times do
      proxy.write("GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\n\r\n")
      head = proxy.gets("\r\n\r\n")
      assert_match(/\A203\.0\.113\.9 /, proxy.read(head[/^content-length: (\d+)/i, 1].to_i))
      restart(server, "USR1")
    end
  end

  # An upgraded connection has objects in its process: its handler is notified, and it stays until it ends.
  def test_upgraded_connections_are_told
    skip "needs connections that can move" unless XorProxy.moves?
    write "config.ru", <<~RUBY
      HANDLER = Class.new do
        def on_open(client) = client.write("hello")
        def on_shutdown(client) = client.write("bye")
      end
      run lambda { |env|
        env["rack.upgrade"] = HANDLER.new if env["rack.upgrade?"]
        [200, {}, [Process.pid.to_s]]
      }
    RUBY
    server = cluster
    events, plain = Array.new(2) { TCPSocket.new("127.0.0.1", server.port) }
    events.write("GET / HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n\r\n")
    events.gets("data: hello\n")
    ask(plain)
    restart(server, "USR1")
    assert_match(/^data: bye$/, events.read)
    assert_match(%r{\AHTTP/1.1 200}, ask(plain))
  end

  # Connections that do not fit get a last answer, because the other workers have a limit, too.
  def test_siblings_that_are_full
    write "config/rondo.rb", "max_connections 10\ndrain_timeout 1\n"
    server = cluster(workers: 2)
    idle = Array.new(16) { TCPSocket.new("127.0.0.1", server.port).tap { |socket| ask(socket) } }
    leaving = workers(server).fetch(1)
    server.signal("TTOU")
    wait_for_end_of(leaving)
    ended = idle.select { |socket| socket.wait_readable(0) && socket.read.empty? }
    assert_operator ended.size, :>=, 6
    (idle - ended).each { |socket| assert_match(%r{\AHTTP/1.1 200}, ask(socket)) }
  end
end
