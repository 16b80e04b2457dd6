# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Requests, events and tasks in fibers: many wait on one thread, none finds anything of another one, and what ends one of
# them ends no other. With RONDO_TEST_FIBERS the other tests of this folder run with fibers, too.

require_relative "rack_case"
require_relative "gated"
require "English"
require "net/http"
require "support/websocket_peer"
require "timeout"

class InFibersTest < RackCase
  include Gated

  FIBERS = { fibers: 50, max_threads: 1 }.freeze

  def serve_with_fibers(**settings, &app)
    start(lint: false, **FIBERS, **settings, &app)
  end

  def test_many_wait_on_one_thread
    running = start_gated(**FIBERS)
    clients = enter(40)
    assert_equal 1, @threads.uniq.size
    assert_equal "/", get(connect).body, "others are answered meanwhile"
    assert_equal 40, running.server.stats[:busy]
    release(clients)
    eventually("all have left") { running.server.stats[:busy].zero? }
  end

  def test_one_more_than_there_are_fibers_waits_in_the_queue
    running = start_gated(**FIBERS, fibers: 3)
    clients = enter(3)
    last = connect.tap { |client| client.write(bytes("GET", "/last")) }
    eventually("it is in the queue") { running.server.stats[:queue] == 1 }
    @gate << true
    assert_equal "/last", last.response.body
    2.times { @gate << true }
    clients.each { |client| assert_equal "/wait", client.response.body }
  end

  def test_a_request_to_the_same_server
    running = serve_with_fibers do |env|
      next [200, {}, ["inner"]] if env["PATH_INFO"] == "/inner"

      [200, {}, ["outer of #{Net::HTTP.get(URI("#{running.url.sub("tcp", "http")}/inner"))}"]]
    end
    clients = ask(10, "/outer")
    clients.each { |client| assert_equal "outer of inner", client.response.body }
  end

  def test_what_waits_of_itself
    serve_with_fibers do |env|
      [200, {}, [case env["PATH_INFO"]
                 when "/sleep" then sleep(0.01) && "slept"
                 when "/child" then `echo from a child`
                 when "/thread" then Thread.new { "from a thread" }.value
                 when "/queue" then Queue.new.tap { |queue| Thread.new { queue << "from a queue" } }.pop
                 when "/pipe" then IO.pipe.then { |from, to| Thread.new { to << "from a pipe" } && from.readpartial(99) }
                 when "/name" then Addrinfo.tcp("localhost", 80).ip_address
                 end]]
    end
    assert_equal "slept", get(connect, "/sleep").body
    assert_equal "from a child\n", get(connect, "/child").body
    assert_equal "from a thread", get(connect, "/thread").body
    assert_equal "from a queue", get(connect, "/queue").body
    assert_equal "from a pipe", get(connect, "/pipe").body
    assert_match(/\A(127.0.0.1|::1)\z/, get(connect, "/name").body)
  end

  # The gate is in a fiber that blocks, so the thread waits.
  def test_a_call_that_does_not_cooperate_delays_its_own_thread_alone
    running = serve_with_fibers(max_threads: 2) do |env|
      case env["PATH_INFO"]
      when "/blocks" then Fiber.new(blocking: true) { (@entered << Thread.current) && @gate.pop }.resume
      when "/wait" then (@entered << Thread.current) && sleep(0.001)
      end
      [200, {}, [env["PATH_INFO"]]]
    end
    blocked = ask(1, "/blocks")
    blocker = take(@entered, "it blocks")
    clients = ask(20, "/wait")
    refute_includes Array.new(20) { take(@entered) }, blocker
    clients.each { |client| assert_equal "/wait", client.response.body }
    @gate << true
    assert_equal "/blocks", blocked.first.response.body
    assert_operator running.server.stats[:takeovers], :>=, 1
  end

  # Both go on in one batch: the first one ends, and the second one blocks the thread.
  def test_a_call_that_blocks_after_a_wait_delays_its_own_thread_alone
    blocked = Queue.new
    serve_with_fibers(max_threads: 2) do |env|
      if env["PATH_INFO"] != "/"
        (@entered << true) && @gate.pop
        Fiber.new(blocking: true) { (@entered << true) && blocked.pop }.resume if env["PATH_INFO"] == "/blocks"
      end
      [200, {}, [env["PATH_INFO"]]]
    end
    clients = %w[/waits /blocks].map { |path| ask(1, path).first.tap { take(@entered) } }
    2.times { @gate << true }
    take(@entered, "it blocks")
    assert_equal "/", get(connect).body
    blocked << true
    assert_equal(%w[/waits /blocks], clients.map { |client| client.response.body })
  end

  # The fibers of a thread that lost the loop go on there.
  def test_both_threads_go_on_with_their_fibers
    serve_with_fibers(max_threads: 2) do |env|
      case env["PATH_INFO"]
      when "/blocks" then Fiber.new(blocking: true) { (@entered << Thread.current) && @gate.pop }.resume
      when "/long" then 20.times { sleep 0.001 }
      end
      [200, {}, [Thread.current.object_id.to_s]]
    end
    long = ask(10, "/long")
    blocked = ask(1, "/blocks")
    blocker = take(@entered)
    others = ask(10, "/long")
    threads = others.map { |client| client.response.body }
    assert_equal 1, threads.uniq.size
    @gate << true
    assert_equal blocker.object_id.to_s, blocked.first.response.body
    long.each { |client| assert_equal 200, client.response.status }
  end

  def test_nothing_is_found_of_the_request_before
    found = lambda do |env|
      before = [Thread.current[:mine], Fiber.current.instance_variable_get(:@mine)]
      before << Fiber[:mine] if Fiber.respond_to?(:[])
      Thread.current[:mine] = 1 if env["PATH_INFO"] == "/local"
      Fiber.current.instance_variable_set(:@mine, 2) if env["PATH_INFO"] == "/variable"
      Fiber[:mine] = 3 if env["PATH_INFO"] == "/storage" && Fiber.respond_to?(:[])
      [200, {}, [before.compact.inspect]]
    end
    client = connect(serve_with_fibers(&found))
    %w[/ /local / /variable / /storage / /].each { |path| assert_equal "[]", get(client, path).body, path }
    client = connect(serve_with_fibers(fiber_pool: true, &found))
    assert_equal "[]", get(client, "/local").body
    assert_equal "[1]", get(client).body
  end

  def test_a_fiber_that_has_kept_nothing_is_used_again
    seen = [] # not their object_id, which newer Rubies keep as a variable of the fiber
    client = connect(serve_with_fibers { [200, {}, [(seen << Fiber.current).size.to_s]] })
    assert_equal %w[1 2 3 4 5], Array.new(5) { get(client).body }
    assert(seen.all? { |fiber| fiber.equal?(seen.first) })
  end

  # I18n keeps its configuration there, in the fiber of the program.
  def test_what_the_program_keeps_in_its_fiber_is_not_the_requests
    skip "Ruby #{RUBY_VERSION} has no storage of fibers" unless Fiber.respond_to?(:[])
    Fiber[:of_the_program] = 1
    seen = []
    client = connect(serve_with_fibers { [200, {}, [(seen << Fiber.current) && Fiber[:of_the_program].inspect]] })
    assert_equal %w[nil nil], Array.new(2) { get(client).body }
    assert_same(*seen)
  ensure
    Fiber[:of_the_program] = nil if Fiber.respond_to?(:[])
  end

  def test_a_resting_fiber_that_the_application_ends
    rested = nil
    client = connect(serve_with_fibers do |env|
      rested&.raise(IndexError, "from another request") if env["PATH_INFO"] == "/raise"
      sleep 0.001 if env["PATH_INFO"] == "/wait"
      rested = Fiber.current
      [200, {}, []]
    end)
    inside = ask(2, "/wait")
    inside.each { |other| assert_equal 200, other.response.status }
    connect.write(bytes("GET", "/raise"))
    3.times { assert_equal 200, get(client).status }
  end

  # What begins fibers must not move.
  def test_objects_move_while_fibers_wait
    skip "this Ruby does not compact" unless GC.respond_to?(:compact)
    serve_with_fibers do |env|
      sleep 0.001
      GC.compact if env["PATH_INFO"] == "/moves"
      Thread.current[:mine] = Object.new
      sleep 0.001
      [200, {}, [env["PATH_INFO"]]]
    end
    5.times do
      clients = ask(10, "/") + ask(1, "/moves")
      clients.each { |client| assert_equal 200, client.response.status }
    end
  end

  STACK_BYTES = 1 << 24

  # A program that has address space for five of 200 fibers, and 8 MB more: less would be too little for everything else
  # now and then, and the program would end for that.
  # @return [String] what it prints
  def run_without_stacks
    script = <<~RUBY
      require "rondo"
      require "socket"
      log = Object.new
      %i[debug info warn error].each { |level| log.define_singleton_method(level) { |line| $stdout.puts line } }
      gate = Queue.new
      app = ->(env) { gate.pop if env["PATH_INFO"] != "/"; [200, {}, []] }
      server = Rondo::Server.new(app, log: log, environment: "production", fibers: 1000, max_threads: 1)
      port = server.listen("tcp://127.0.0.1:0")[/\\d+\\z/].to_i
      thread = Thread.new { server.run }
      ask = ->(path) { TCPSocket.new("127.0.0.1", port).tap { |io| io.write("GET \#{path} HTTP/1.0\\r\\n\\r\\n") } }
      ask.call("/").read
      pages = File.read("/proc/self/statm").to_i
      Process.setrlimit(:AS, (pages * 4096) + (5 * #{STACK_BYTES}) + 8_000_000)
      clients = Array.new(200) { ask.call("/waits") } << ask.call("/")
      Thread.pass until server.stats[:queue].positive?
      gate.close
      puts clients.count { |client| client.read.start_with?("HTTP/1.1 200") }
      server.stop
      thread.join
    RUBY
    IO.popen([{ "RUBY_FIBER_MACHINE_STACK_SIZE" => STACK_BYTES.to_s }, RbConfig.ruby,
              *$LOAD_PATH.flat_map { |folder| ["-I", folder] }, "-e", script], &:read)
  end

  def test_a_system_that_has_no_stack_for_one_more_fiber
    skip "it connects to the server itself" if XorProxy.on?
    assert_equal "201\n", run_without_stacks
  end

  def test_errors_are_those_of_one_request
    serve_gated_errors
    inside = enter(5)
    assert_equal 500, get(connect, "/raise").status
    assert_equal 500, get(connect, "/throw").status
    assert_equal "late", get(connect, "/timeout").body
    assert_equal "thrown", get(connect, "/catch").body
    5.times { @gate << true }
    inside.each { |client| assert_equal 200, client.response.status }
    assert_includes log, "after a wait"
  end

  def serve_gated_errors
    serve_with_fibers do |env|
      body = case env["PATH_INFO"]
             when "/wait" then (@entered << Thread.current) && @gate.pop
             when "/raise" then sleep(0.001) && raise("after a wait")
             when "/throw" then sleep(0.001) && throw(:nowhere)
             when "/timeout" then late { Queue.new.pop }
             when "/catch" then catch(:here) { sleep(0.001) && throw(:here, "thrown") }
             end
      [200, {}, [body.to_s]]
    end
  end

  def late(&block)
    Timeout.timeout(0.01, &block)
  rescue Timeout::Error
    "late"
  end

  # As rack-timeout does. Nobody can say whom the thread means.
  def test_an_exception_for_the_thread_belongs_to_no_request
    start_gated(**FIBERS)
    clients = enter(3)
    @threads.first.raise(IndexError, "for one of them")
    eventually("it is logged") { log.include?("IndexError: for one of them") }
    release(clients)
  end

  def test_the_limit_of_a_request_ends_it_where_it_waits
    ended = Queue.new
    serve_with_fibers(request_timeout_ms: 2_000) do |env|
      next [200, {}, []] unless env["PATH_INFO"] == "/hangs"

      begin
        Queue.new.pop
      ensure
        ended << $ERROR_INFO.class
      end
    end
    assert_equal 503, get(connect, "/hangs").status
    assert_equal Rondo::RequestTimeout, take(ended, "the wait ends")
    assert_equal 200, get(connect).status
    eventually("the place is named") { log.include?("in_fibers_test.rb") }
  end

  # A limit is over while its fiber has got a Mutex and could not run yet. It takes the Mutex, and gives it back.
  def test_the_limit_of_a_request_that_has_just_got_a_mutex
    mutex = Mutex.new.tap(&:lock)
    stop = false
    running = serve_with_fibers(request_timeout_ms: 2_000) do |env|
      (@entered << true) && mutex.synchronize { sleep } if env["PATH_INFO"] == "/first"
      [200, {}, []]
    end
    first = connect(running).tap { |client| client.write(bytes("GET", "/first")) }
    take(@entered)
    Rondo.run { (@entered << true) && mutex.synchronize { @entered << :second } }
    take(@entered)
    assert_equal 200, get(connect(running)).status, "both wait"
    Rondo.run do
      @entered << true
      compute until stop
    end
    take(@entered)
    mutex.unlock
    assert_equal 503, first.response.status
    sleep 0.05 # now it is most likely raised
    stop = true
    assert_equal :second, take(@entered, "the next one gets the Mutex")
  end

  def test_a_slow_request_is_reported_with_its_place
    serve_with_fibers(slow_request_ms: 10) do
      @gate.pop
      [200, {}, []]
    end
    ask(1, "/")
    eventually("it is reported") { log =~ /no answer for .*in_fibers_test.rb/m }
  end

  def test_a_fiber_that_keeps_its_thread_is_reported_with_its_place
    reported = false
    serve_with_fibers(slow_fiber_ms: 20) do
      compute until reported
      [200, {}, []]
    end
    client = connect
    client.write(bytes("GET", "/computes"))
    eventually("it is reported") { log.include?("kept its thread") }
    reported = true
    assert_equal 200, client.response.status
    assert_match(/kept its thread for more than 20 ms.*in_fibers_test.rb.*compute/m, log)
  end

  def compute
    1000.times { Math.sqrt(2) }
  end

  def test_bodies_that_wait
    serve_with_fibers do
      [200, {}, Body.new { |out| 3.times { |i| out.call(i.to_s) && sleep(0.005) } }]
    end
    clients = ask(30, "/")
    clients.each { |client| assert_equal "012", client.response.body }
  end

  def test_a_large_body_to_clients_that_do_not_read
    part = "x" * 100_000
    serve_with_fibers(fibers: 2) do |env|
      env["PATH_INFO"] == "/large" ? [200, {}, Body.new { |out| 30.times { out.call(part) } }] : [200, {}, ["fine"]]
    end
    stalled = ask(5, "/large")
    10.times { assert_equal "fine", get(connect).body }
    stalled.each { |client| assert_equal 3_000_000, client.response.body.bytesize }
  end

  def test_a_fork_in_a_fiber
    from, to = IO.pipe
    serve_with_fibers do |env|
      sleep 0.001
      pid = fork { to.write("child") && exit!(0) } if env["PATH_INFO"] == "/fork"
      Process.wait(pid) if pid
      [200, {}, ["parent"]]
    end
    inside = ask(3, "/")
    assert_equal "parent", get(connect, "/fork").body
    inside.each { |client| assert_equal "parent", client.response.body }
    assert_equal "child", from.readpartial(10)
  end

  def test_a_server_waits_for_fibers_when_it_stops
    running = start_gated(**FIBERS)
    client = enter(1).first
    running.server.stop
    @gate << true
    assert_equal "/wait", client.response.body
    assert running.thread.join(PATIENCE), "it stops"
  end

  def test_fibers_of_the_application_end_with_the_thread
    ended = Queue.new
    running = serve_with_fibers do
      Fiber.schedule do
        Queue.new.pop
      ensure
        ended << $ERROR_INFO.class
      end
      [200, {}, []]
    end
    assert_equal 200, get(connect).status
    running.server.stop
    assert running.thread.join(PATIENCE), "it stops"
    assert_equal Rondo::Scheduler::Stopped, ended.pop(true)
  end

  def test_the_end_of_the_server_s_thread_ends_fibers_that_wait
    ended = Queue.new
    running = serve_with_fibers do
      @entered << true
      Queue.new.pop
    ensure
      ended << true
    end
    ask(3, "/")
    3.times { take(@entered) }
    running.thread.kill
    assert running.thread.join(PATIENCE), "it ends"
    assert_equal 3, ended.size
  end

  # It comes while a fiber's `ensure` clause waits. Another thread takes over.
  def test_an_exception_for_a_thread_that_ends
    threads, ends = Array.new(2) { Queue.new }
    running = serve_with_fibers do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      begin
        threads << Thread.current
        Queue.new.pop
      ensure
        ends << true
        @gate.pop
      end
    end
    ask(1, "/")
    thread = take(threads).tap(&:kill)
    take(ends)
    thread.raise("late")
    Thread.pass while thread.pending_interrupt?
    @gate << true
    assert_equal "quick", get(connect(running), "/quick").body
    refute thread.join(PATIENCE).alive?
    eventually("it is logged") { log.include?("late") }
  end

  def test_a_scheduler_of_the_application_stays
    scheduler = Rondo::Scheduler.new
    start(lint: false, fibers: 10, max_threads: 1, thread_start: -> { Fiber.set_scheduler(scheduler) }) do
      [200, {}, [Fiber.scheduler.equal?(scheduler).to_s]]
    end
    assert_equal "true", get(connect).body
    assert_includes log, "has a scheduler of the application, Rondo::Scheduler"
  end

  # Answers each message after a wait that the message asks for.
  class WaitingEcho
    def initialize(entered, gate)
      @entered = entered
      @gate = gate
    end

    def on_message(client, message)
      (@entered << message) && @gate.pop if message.start_with?("wait")
      client.write("echo of #{message}")
    end
  end

  def test_messages_of_a_client_are_handled_one_after_the_other
    running = serve_with_fibers do |env|
      env["rack.upgrade"] = WaitingEcho.new(@entered, @gate)
      [200, {}, []]
    end
    slow, quick = Array.new(2) { WebsocketPeer.new(running.url) }
    ["wait 1", "two", "wait 3", "four"].each { |text| slow.say(text) }
    assert_equal "wait 1", take(@entered)
    assert_equal "echo of others go on", quick.ask("others go on")
    refute slow.wait_readable(0), "the next message waits for the one before"
    @gate << true
    assert_equal ["echo of wait 1", "echo of two"], Array.new(2) { slow.hear }
    assert_equal "wait 3", take(@entered)
    @gate << true
    assert_equal ["echo of wait 3", "echo of four"], Array.new(2) { slow.hear }
    [slow, quick].each(&:close)
  end

  def test_idle_clients_have_no_fibers
    running = serve_with_fibers(fibers: 2) do |env|
      env["rack.upgrade"] = WaitingEcho.new(@entered, @gate)
      [200, {}, []]
    end
    peers = Array.new(20) { WebsocketPeer.new(running.url) }
    peers.each { |peer| assert_equal "echo of it", peer.ask("it") }
    eventually("none is inside") { running.server.stats[:busy].zero? }
    peers.each(&:close)
  end

  def test_tasks_wait_at_the_same_time
    running = serve_with_fibers { [200, {}, []] }
    get(connect(running))
    10.times { Rondo.run { (@entered << true) && @gate.pop } }
    10.times { take(@entered, "a task begins") }
    assert_equal 10, running.server.stats[:tasks_running]
    10.times { @gate << true }
    eventually("all are over") { running.server.stats[:tasks_running].zero? }
  end
end
