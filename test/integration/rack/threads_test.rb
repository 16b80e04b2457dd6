# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Application threads: blocked calls beside others, places, growing and shrinking, hooks, deadlines
# of the queue, and what goes on while Ruby itself is stuck.

require_relative "rack_case"
require_relative "gated"
require "fiddle"
require "io/nonblock"
require "support/websocket_peer"

class ThreadsTest < RackCase
  include Gated

  # Reads and writes in C, and keeps the GVL.
  READ, WRITE = %w[read write].map do |name|
    Fiddle::Function.new(Fiddle.dlopen(nil)[name], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T],
                         Fiddle::TYPE_SIZE_T, need_gvl: true)
  end

  def teardown
    @gates&.each_value(&:close)
    super
  end

  def closing(path)
    bytes("GET", path, { "Connection" => "close" })
  end

  def assert_whole(client)
    assert client.read_all(timeout: PATIENCE).end_with?("0\r\n\r\n"), "the response is whole"
  end

  def stats
    @running.last.server.stats
  end

  def test_a_blocked_call_holds_nobody_up
    start_gated(max_threads: 2)
    waiting = enter(1)
    client = connect
    50.times { |n| assert_equal "/#{n}", get(client, "/#{n}").body }
    release(waiting)
  end

  def test_all_places_taken_and_all_but_one
    needs_threads
    start_gated(max_threads: 4)
    waiting = enter(3)
    assert_equal "/free", get(connect, "/free").body
    waiting += enter(1)
    late = connect
    late.write(bytes("GET", "/late"))
    eventually("the request is in the queue") { stats[:queue] == 1 }
    assert_equal 4, stats[:busy]
    release(waiting)
    assert_equal "/late", late.response.body
  end

  # Serves an application whose requests wait until their path is released; /io says before that it only waits.
  def start_marking(**settings)
    @gates = %w[/io /plain /late].to_h { |path| [path, Queue.new] }
    start(lint: false, **settings) do |env|
      path = env["PATH_INFO"]
      2.times { env["rack.hijack"].mark_as_io_bound } if path == "/io"
      @entered << path
      @gates[path].pop
      [200, {}, [path]]
    end
  end

  # @return [Array<RawClient>] clients whose requests are inside the application
  def inside(count, path)
    ask(count, path).each { assert_equal path, take(@entered) }
  end

  def assert_queued(path, busy:)
    eventually("the request is in the queue") { stats.values_at(:queue, :busy) == [1, busy] }
    assert_empty @entered, path
  end

  def answer(clients, path)
    clients.size.times { @gates[path] << true }
    clients.each { |client| assert_equal path, client.response.body }
  end

  # Two of the three count, so there are places for three and for two more.
  def test_calls_that_only_wait_make_places
    needs_threads
    start_marking(min_threads: 1, max_threads: 3, max_io_threads: 2, reap_after_ms: 10)
    2.times do
      marked, plain, late = inside(3, "/io"), inside(2, "/plain"), ask(1, "/late")
      assert_queued("/late", busy: 5)
      answer(plain, "/plain")
      assert_equal "/late", take(@entered)
      answer(late, "/late")
      answer(marked, "/io")
    end
    eventually("the pool shrinks to a leader and its standby") { stats[:threads] == 2 }
  end

  def test_a_place_ends_with_the_call_that_made_it
    needs_threads
    start_marking(max_threads: 1, max_io_threads: 1)
    2.times do
      marked, plain = inside(1, "/io"), inside(1, "/plain")
      answer(marked, "/io")
      late = ask(1, "/late")
      assert_queued("/late", busy: 1)
      answer(plain, "/plain")
      assert_equal "/late", take(@entered)
      answer(late, "/late")
    end
  end

  def test_calls_cannot_make_places_where_no_setting_allows_it
    needs_threads
    start_marking(max_threads: 1)
    marked, late = inside(1, "/io"), ask(1, "/late")
    assert_queued("/late", busy: 1)
    answer(marked, "/io")
    answer(late, "/late")
  end

  def test_pipelined_requests_behind_a_blocked_one_come_in_order
    start_gated(max_threads: 4)
    client = connect
    client.write(bytes("GET", "/wait") + bytes("GET", "/second") + bytes("GET", "/third"))
    take(@entered)
    assert_equal "/other", get(connect, "/other").body
    release([client])
    assert_equal %w[/second /third], Array.new(2) { client.response.body }
  end

  def test_the_pool_grows_and_shrinks
    start_gated(min_threads: 1, max_threads: 6, reap_after_ms: 10)
    release(enter(6))
    assert_operator stats[:max_threads], :>=, 6
    eventually("the pool shrinks to a leader and its standby") { stats[:threads] == 2 }
    release(enter(6))
  end

  def test_min_threads_are_there_from_the_beginning
    start_gated(min_threads: 4, max_threads: 4, reap_after_ms: 10)
    eventually("the threads are there") { stats[:threads] == 4 }
    release(enter(4))
    assert_equal 4, stats[:threads]
  end

  # A program that serves one request. Each of its threads takes 64 MiB of address space, and there is little of it.
  # @param begins [String] what it does before the server runs
  # @param stops_when [String] what has to be true before it stops the server, unless that takes too long
  # @return [String] what it prints
  def run_without_room(begins = "", stops_when: "true")
    skip "Ruby 3.3 itself crashes or hangs after a thread that it cannot make" if RUBY_VERSION.start_with?("3.3.")
    script = <<~RUBY
      require "rondo"
      require "net/http"
      errors = 0
      log = Object.new
      %i[debug info warn error].each { |level| log.define_singleton_method(level) { |_| errors += 1 if level == :error } }
      app = ->(_env) { [200, {}, ["served"]] }
      server = Rondo::Server.new(app, log: log, environment: "production", min_threads: 20, max_threads: 20)
      port = server.listen("tcp://127.0.0.1:0")[/\\d+\\z/].to_i
      pages = File.read("/proc/self/statm").to_i
      Process.setrlimit(:AS, (pages * 4096) + 400_000_000)
      #{begins}
      thread = Thread.new { server.run }
      # What comes before may have stopped the server already.
      begin
        puts Net::HTTP.get("127.0.0.1", "/", port)
      rescue SystemCallError, IOError
        puts "refused"
      end
      #{PATIENCE * 100}.times { (#{stops_when}) ? break : sleep(0.01) }
      server.stop
      thread.join
      puts "errors: \#{errors}, threads: \#{server.stats[:threads]}"
    RUBY
    environment = { "RUBY_THREAD_MACHINE_STACK_SIZE" => (64 << 20).to_s }
    IO.popen([environment, RbConfig.ruby, *$LOAD_PATH.flat_map { |folder| ["-I", folder] }, "-e", script], &:read)
  end

  def test_a_system_that_gives_no_more_threads
    skip "it connects to the server itself" if XorProxy.on?
    # The first threads may serve before the last ones were asked for.
    assert_match(/\Aserved\nerrors: [1-9]\d?, threads: 0\Z/, run_without_room(stops_when: "errors.positive?"))
  end

  # The last threads end while one more is asked for in vain.
  def test_a_thread_that_the_system_refuses_is_not_counted
    skip "it connects to the server itself" if XorProxy.on?
    begins = <<~RUBY
      TracePoint.new(:raise) do |point|
        next unless point.raised_exception.is_a?(ThreadError)
        point.disable
        Net::HTTP.get("127.0.0.1", "/", port)
        server.stop
        sleep 0.001 until server.stats[:threads] <= 1 && Thread.list.size <= 3
      end.enable
    RUBY
    assert_match(/threads: 0\Z/, run_without_room(begins))
  end

  # The first calls wait until all places are taken.
  def test_never_more_calls_than_places
    inside = {}
    most = 0
    running = start(lint: false, max_threads: 3) do |_env|
      inside[Thread.current] = true
      most = [most, inside.size].max
      eventually("all places are taken") { most >= 3 }
      sleep 0.0005
      [200, {}, ["x" * 300_000]]
    ensure
      inside.delete(Thread.current)
    end
    threads = Array.new(12) do
      Thread.new { RawClient.open(running.url) { |client| Array.new(30) { get(client).status }.uniq } }
    end
    assert_equal([[200]] * 12, threads.map { |thread| value_of(thread) })
    assert_empty log
    assert_equal 3, most
  end

  def test_a_body_that_waits_for_its_client_takes_no_place
    running = start(lint: false, max_threads: 1) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      [200, {}, Body.new { |out| 200.times { out.call("x" * 100_000) } }]
    end
    slow = Array.new(3) { connect(running, receive_buffer: 16_384).tap { |client| client.write(closing("/slow")) } }
    eventually("all of them wait") { stats[:waiting] == 3 }
    5.times { assert_equal "quick", get(connect, "/quick").body }
    eventually("no call has a place") { stats[:busy].zero? }
    slow.each { |client| assert_whole client }
  end

  # Bodies that never wait for their clients, with a place for one call: a client that reads keeps getting bytes.
  def start_endless
    start(lint: false, max_threads: 1) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      next [200, {}, Body.new { |out| out.call("x") until @done }] if env["PATH_INFO"] == "/each"
      [200, {}, ->(stream) { (stream.write("x") until @done) || stream.close }]
    end
  end

  def read_endless(*paths)
    paths.map do |path|
      client = connect
      client.write(closing(path))
      Thread.new do
        client.read_all(timeout: PATIENCE)
      rescue Errno::ECONNRESET
        "reset"
      end
    end
  end

  def test_a_long_body_lets_others_go_first
    start_endless
    readers = read_endless("/each", "/stream")
    eventually("both are inside") { stats[:requests] == 2 }
    3.times { assert_equal "quick", get(connect, "/quick").body }
    @done = true
    readers.each { |reader| assert value_of(reader).end_with?("0\r\n\r\n"), "the response is whole" }
  end

  # Answers every message while a body runs that never waits for its client.
  def test_a_long_body_lets_messages_go_first
    echo = Object.new
    def echo.on_message(client, data) = client.write(data)
    running = start(lint: false, max_threads: 1) do |env|
      env["rack.upgrade"] = echo
      [200, {}, Body.new { |out| out.call("x") until @done }]
    end
    reader = read_endless("/each").first
    eventually("it is inside") { stats[:requests] == 1 }
    peer = WebsocketPeer.new(running.url, "/")
    2.times { |round| assert_equal round.to_s, peer.ask(round.to_s) }
  ensure
    @done = true
    peer&.close
    value_of(reader)
  end

  # As with a pool of database connections: calls with a place wait for it, with a deadline.
  def test_long_bodies_that_hold_what_others_wait_for
    pool = Queue.new
    2.times { pool << :connection }
    asked = Queue.new
    monitor = Monitor.new
    given_back = monitor.new_cond
    start(lint: false, max_threads: 2) do |env|
      if env["PATH_INFO"] == "/quick"
        asked << true
        monitor.synchronize { given_back.wait(PATIENCE) while pool.empty? }
        next [200, {}, ["quick"]]
      end
      [200, {}, Body.new do |out|
        held = pool.pop
        out.call("x") until asked.size == 2
        monitor.synchronize { pool << held and given_back.broadcast }
      end]
    end
    readers = read_endless("/each", "/each")
    eventually("both are inside") { pool.empty? }
    quick = Array.new(2) { connect.tap { |client| client.write(closing("/quick")) } }
    quick.each { |client| assert_equal "quick", client.response.body }
    readers.each { |reader| assert value_of(reader).end_with?("0\r\n\r\n") }
  end

  # A call that waits for the Mutex has the only place, and the call that holds the Mutex waits for the place.
  def test_a_long_body_that_holds_a_mutex_is_let_in_past_those_who_wait_for_it
    mutex = Mutex.new
    asked = false
    start(lint: false, max_threads: 1) do |env|
      if env["PATH_INFO"] == "/lock"
        asked = true
        next [200, {}, [mutex.synchronize { "locked" }]]
      end
      [200, {}, Body.new { |out| mutex.synchronize { out.call("x") until asked && mutex.locked? && !out.call("y") } }]
    end
    long = connect
    long.write(bytes("GET", "/hold", {}, nil, version: "1.0"))
    reader = Thread.new { long.read_all(timeout: PATIENCE) }
    eventually("it is inside") { stats[:requests] == 1 }
    assert_equal "locked", get(connect, "/lock").body
    assert value_of(reader).end_with?("y")
  end

  def test_a_stop_while_bodies_stand_aside
    running = start_endless
    readers = read_endless("/each", "/stream", "/each")
    eventually("all are inside") { stats[:requests] == 3 }
    running.server.stop(force: true)
    assert_equal %w[reset] * 3, readers.map { |reader| value_of(reader) }
    eventually("all threads are gone") { stats[:threads].zero? }
  end

  def test_a_mutex_that_is_held_while_a_body_waits
    mutex = Mutex.new
    running = start(lint: false, max_threads: 2) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      next [200, {}, [mutex.synchronize { "locked" }]] if env["PATH_INFO"] == "/lock"
      [200, {}, Body.new { |out| mutex.synchronize { 100.times { out.call("x" * 100_000) } } }]
    end
    slow = connect(running, receive_buffer: 16_384)
    slow.write(closing("/slow"))
    eventually("it waits") { stats[:waiting] == 1 }
    locker = connect
    locker.write(bytes("GET", "/lock"))
    eventually("the other one waits for the lock") { stats[:busy] == 1 }
    assert_equal "quick", get(connect, "/quick").body
    assert_whole slow
    assert_equal "locked", locker.response.body
  end

  def test_hooks_run_in_every_thread
    needs_threads
    seen = Queue.new
    start_gated(max_threads: 3, reap_after_ms: 10,
                thread_start: -> { seen << [:start, Thread.current] },
                thread_exit: -> { seen << [:exit, Thread.current] })
    release(enter(3))
    @running.last.stop
    events = Array.new(seen.size) { seen.pop }
    started, ended = %i[start exit].map { |kind| events.select { |event, _| event == kind }.map(&:last) }
    assert_operator started.size, :>=, 3
    assert_equal started.sort_by(&:object_id), ended.sort_by(&:object_id)
    assert_equal started, started.uniq
  end

  def test_a_hook_that_raises_is_logged_and_the_thread_serves
    start_gated(thread_start: -> { raise "no hook" })
    assert_equal "/a", get(connect, "/a").body
    eventually("it is logged") { log.include?("no hook") }
  end

  def test_a_thread_that_is_killed_is_replaced
    closes = Queue.new
    running = start(lint: false, max_threads: 2) do |env|
      next [200, {}, ["fine"]] if env["PATH_INFO"] == "/"
      [200, {}, Body.new(log: closes) { |out| env["PATH_INFO"] == "/kill" ? Thread.current.kill : out.call("x") }]
    end
    5.times do
      client = connect(running)
      client.write(bytes("GET", "/kill"))
      refute client.read_all(timeout: PATIENCE).end_with?("0\r\n\r\n"), "the answer is not whole"
      assert_equal :close, take(closes, "the body is closed")
      assert_equal "fine", get(connect).body
    end
  end

  # The application blocks interrupts; run() waits for a moment and ends all the same.
  def test_run_ends_though_a_thread_does_not
    entered = Queue.new
    running = start(lint: false, max_threads: 2) do |_env|
      Thread.handle_interrupt(Object => :never) do
        entered << true
        sleep 3
      end
      [200, {}, []]
    end
    connect(running).write(bytes("GET", "/"))
    take(entered)
    running.thread.kill
    assert running.thread.join(PATIENCE), "run() ends"
  end

  def test_exceptions_that_come_too_late_do_not_stop_the_loop
    start_gated(max_threads: 2)
    get(connect, "/a")
    release(enter(1))
    @threads.first.raise(ArgumentError, "much too late")
    eventually("it is logged") { log.include?("much too late") }
    assert_equal "/b", get(connect, "/b").body
  end

  # ---- deadlines of the queue ----

  def test_requests_that_wait_too_long_are_turned_away
    needs_threads
    start_gated(max_threads: 1, queue_timeout_ms: 3000) # enough for requests that find a free place
    waiting = enter(1)
    client = connect
    2.times do
      response = get(client, "/late")
      assert_equal [503, "1"], [response.status, response.header("retry-after")]
    end
    eventually("they are counted") { stats[:dropped] == 2 }
    release(waiting)
    assert_equal "/now", get(client, "/now").body
  end

  def test_more_than_max_queue_are_turned_away_at_once
    needs_threads
    start_gated(max_threads: 1, max_queue: 2)
    waiting = enter(1)
    queued = Array.new(2) { connect.tap { |client| client.write(bytes("GET", "/queued")) } }
    eventually("they are in the queue") { stats[:queue] == 2 }
    client = connect
    assert_equal 503, get(client, "/more").status
    assert_equal 503, post(client, "/more", "x" * 100_000).status
    release(waiting)
    queued.each { |one| assert_equal "/queued", one.response.body }
    assert_equal "/now", get(client, "/now").body
  end

  # ---- while Ruby is stuck ----

  # The clients are another process, because this one's Ruby is stuck until that process lets it continue, or ends.
  def test_refusals_and_connections_while_ruby_is_stuck
    gate, opener = IO.pipe
    gate.nonblock = false
    inside, entering = IO.pipe
    running = start(lint: false) do |env|
      if env["PATH_INFO"] == "/stuck"
        WRITE.call(entering.fileno, ".", 1) # without a moment in which another thread could run
        READ.call(gate.fileno, Fiddle::Pointer.malloc(1, Fiddle::RUBY_FREE), 1)
      end
      [200, {}, [env["PATH_INFO"]]]
    end
    script = <<~RUBY
      require "socket"
      ask = lambda do |bytes|
        TCPSocket.new("127.0.0.1", #{running.port}).tap { |socket| socket.write(bytes) }
      end
      get = ->(path) { ask.call("GET \#{path} HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n") }
      status = ->(socket) { socket.read.lines.first.to_s.split[1] }
      stuck = get.call("/stuck")
      $stdin.read(1) # the application is inside
      queued = get.call("/queued")
      print status.call(ask.call("nonsense\\r\\n\\r\\n"))
      print IO.select([stuck, queued], nil, nil, 0).inspect
      IO.for_fd(#{opener.fileno}).syswrite(".")
      print status.call(stuck), status.call(queued)
    RUBY
    output = IO.popen([RbConfig.ruby, "-e", script, { in: inside, opener => opener }])
    opener.close
    assert_equal "400nil200200", output.read
    eventually("it is counted") { stats[:watch_turns].positive? }
  ensure
    [output, gate, opener, inside, entering].each { |io| io&.close }
  end
end
