# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Calls that take long: the answer at the deadline, the exception in the application, lines in the
# log; and how long a request waited.

require_relative "rack_case"

class TimeoutsTest < RackCase
  # Quick calls end before it even on a busy machine.
  DEADLINE_MS = 1000

  def setup
    super
    @gate = Queue.new
    @raised = Queue.new
  end

  def teardown
    @gate.close
    super
  end

  def start_blocking(**settings)
    start(lint: false, **settings) do |env|
      if env["PATH_INFO"] == "/wait"
        begin
          @gate.pop
        rescue Exception => e # rubocop:disable Lint/RescueException
          @raised << e
          raise
        end
      end
      [200, {}, [env["PATH_INFO"]]]
    end
  end

  def test_503_at_the_deadline_and_an_exception_in_the_application
    running = start_blocking(request_timeout_ms: DEADLINE_MS, max_threads: 2)
    client = connect(running)
    2.times do
      response = get(client, "/wait")
      assert_equal [503, "1", "the application took too long\n"],
                   [response.status, response.header("retry-after"), response.body]
      error = take(@raised, "the application hears of it")
      assert_instance_of Rondo::RequestTimeout, error
      assert_equal "no answer within 1 s", error.message
      assert_equal "/next", get(client, "/next").body
    end
    eventually("it is counted") { running.server.stats[:timed_out] == 2 }
    eventually("it is logged") { log.scan("GET /wait: Rondo::RequestTimeout: no answer within 1 s\n").size == 2 }
  end

  def test_an_application_that_goes_on_all_the_same
    answers = Queue.new
    running = start(lint: false, request_timeout_ms: DEADLINE_MS, max_threads: 2) do |env|
      next [200, {}, ["quick"]] unless env["PATH_INFO"] == "/wait"
      begin
        @gate.pop
      rescue Rondo::RequestTimeout
        answers << :answered
        [200, {}, ["too late"]]
      end
    end
    client = connect(running)
    assert_equal 503, get(client, "/wait").status
    take(answers)
    assert_equal "quick", get(client, "/").body
  end

  # The other request's deadline is later, and it has passed.
  def test_an_answer_that_has_begun_is_not_ended
    running = start(lint: false, request_timeout_ms: DEADLINE_MS, max_threads: 2) do |env|
      @gate.pop if env["PATH_INFO"] == "/late"
      [200, {}, Body.new { |out| %w[begun ended].each { |part| out.call(part).then { @gate.pop } } }]
    end
    client = connect(running)
    client.write(bytes("GET", "/"))
    eventually("it begins") { client.socket.wait_readable(0.01) }
    assert_equal 503, get(connect(running), "/late").status
    3.times { @gate << true } # the late call may take one before it is interrupted
    assert_equal "begunended", client.response.body
  end

  def test_slow_requests_are_logged_with_a_backtrace
    running = start_blocking(slow_request_ms: 20)
    client = connect(running)
    client.write(bytes("GET", "/wait"))
    eventually("the log says so") { log.match?(%r{GET /wait: no answer for \d+\.\d s; the application is at\n.*timeouts_test\.rb}m) }
    @gate << true
    assert_equal "/wait", client.response.body
    assert_equal 1, log.scan("no answer for").size
  end

  # ---- how long a request waited ----

  def queue_time(fields = {}, **settings)
    running = start(lint: false, queue_time: 1, **settings) { |env| [200, {}, [env["rondo.queue_time"].inspect]] }
    Integer(get(connect(running), "/", fields).body)
  end

  def test_queue_time_is_told
    assert_includes 0..5_000_000, queue_time
    running = start(lint: false) { |env| [200, {}, [env.key?("rondo.queue_time").to_s]] }
    assert_equal "false", get(connect(running)).body
  end

  def test_queue_time_begins_at_the_proxy_that_is_trusted
    began = { "X-Request-Start" => format("t=%.3f", Time.now.to_f - 60) }
    assert_includes 59_000_000..90_000_000, queue_time(began, trusted_proxies: ["127.0.0.1"])
    assert_includes 0..5_000_000, queue_time(began)
    assert_includes 0..5_000_000, queue_time({ "X-Request-Start" => "yesterday" }, trusted_proxies: ["127.0.0.1"])
    assert_includes 0..5_000_000, queue_time({ "X-Request-Start" => "t=9999999999" }, trusted_proxies: ["127.0.0.1"])
  end

  def test_queue_time_in_the_request_log
    lines = StringIO.new
    queue_time(request_log: lines)
    @running.last.stop
    assert_match(/ 200 \d+ 0\.\d{6} 0\.\d{6}$/, lines.string)
    lines = StringIO.new
    queue_time(request_log: lines, request_log_format: :json)
    @running.last.stop
    assert_match(/"duration_us":\d+,"queue_us":\d+\}$/, lines.string)
  end

  def test_lines_about_a_call_that_hangs_show_its_ids
    running = start_blocking(hard_request_timeout_ms: DEADLINE_MS, slow_request_ms: DEADLINE_MS / 2, max_threads: 2,
                             drain_timeout_ms: 3_600_000, request_ids: :pass)
    assert_equal 503, get(connect(running), "/wait", { "X-Request-Id" => "a1" }).status
    eventually("it is logged") { log.match?(/GET \/wait \[request_id=a1\]: no answer for .*given up/) }
    assert_empty log.lines.grep(/no answer/).grep_v(/request_id=a1/)
  end

  # Wherever the thread hangs: no exception is raised, and no stop waits for it.

  def test_503_for_a_call_that_hangs
    running = start_blocking(hard_request_timeout_ms: DEADLINE_MS, max_threads: 2, drain_timeout_ms: 3_600_000)
    client = connect(running)
    response = get(client, "/wait")
    assert_equal [503, "1", "the application took too long\n"],
                 [response.status, response.header("retry-after"), response.body]
    assert_equal "/next", get(client, "/next").body
    assert_predicate @raised, :empty?
    eventually("it is counted") { running.server.stats[:timed_out] == 1 }
    eventually("only the call that hangs is left") { running.server.in_flight == [0] }
    eventually("it is logged") { log.match?(/GET \/wait: no answer for \d\.\d s \(hard_request_timeout\), given up \(503\); the application is at\n/) }
    running.server.stop
    assert running.thread.join(PATIENCE), "the stop waits for what hangs"
  end

  def test_a_call_that_hangs_and_comes_back
    answers = Queue.new
    running = start(lint: false, hard_request_timeout_ms: DEADLINE_MS, max_threads: 2) do |env|
      @gate.pop if env["PATH_INFO"] == "/wait"
      answers << env["PATH_INFO"]
      [200, {}, ["answer"]]
    end
    client = connect(running)
    assert_equal 503, get(client, "/wait").status
    @gate << :go
    take(answers)
    assert_equal "answer", get(client, "/next").body
    running.server.stop
    assert running.thread.join(PATIENCE)
    refute_match(/ClientGone/, log)
  end

  # While a body is on its way, the time counts against the client. The application's time begins when the body is
  # there.
  def test_a_client_that_sends_slowly_is_not_the_application
    running = start(lint: false, request_timeout_ms: DEADLINE_MS, hard_request_timeout_ms: 2 * DEADLINE_MS,
                    max_threads: 2) do |env|
      body = env["rack.input"].read
      @gate.pop if env["PATH_INFO"] == "/wait"
      [200, {}, [body]]
    end
    clients = { "/" => 200, "/wait" => 503 }.map do |path, status|
      client = connect(running).write(bytes("POST", path, { "Expect" => "100-continue", "Content-Length" => "2" }))
      assert_equal 100, client.response(interim: true).status
      [client, status]
    end
    sleep 2.5 * DEADLINE_MS / 1000.0 # the time that must not count, longer than both deadlines
    clients.each do |client, status|
      client.write("ab")
      assert_equal status, client.response.status
    end
    eventually("it is counted") { running.server.stats[:timed_out] == 1 }
  end

  # The exception of the first deadline does not end it.
  def test_a_call_that_hangs_behind_its_request_timeout
    running = start(lint: false, request_timeout_ms: DEADLINE_MS, hard_request_timeout_ms: 2 * DEADLINE_MS,
                    drain_timeout_ms: 3_600_000, max_threads: 2) do |env|
      next [200, {}, ["quick"]] unless env["PATH_INFO"] == "/wait"
      Thread.handle_interrupt(Rondo::RequestTimeout => :never) { @gate.pop }
    end
    client = connect(running)
    assert_equal 503, get(client, "/wait").status
    eventually("it is given up") { running.server.in_flight == [0] }
    eventually("it is counted") { running.server.stats[:timed_out] == 1 }
    assert_equal "quick", get(client, "/").body
    running.server.stop
    assert running.thread.join(PATIENCE), "the stop waits for what hangs"
  end

  # Clients that read little.

  SLOW_BODY = ("x" * 8_000_000).freeze

  # The kernel reports room when the client has taken a third of a buffer of megabytes.
  def test_a_client_that_reads_slowly_and_steadily_is_not_cut
    skip "what the proxy holds counts as read" if XorProxy.on?
    running = start(write_timeout_ms: 6_000) { |_env| [200, {}, [SLOW_BODY]] }
    client = connect(running).write(bytes("GET", "/", { "Connection" => "close" }))
    read = +""
    begun = now
    while (spent = now - begun) < 7
      # 100 KB a second, also after this process has stood still
      read << client.socket.readpartial(2_048) while read.bytesize < spent * 100_000
      IO.select(nil, nil, nil, 0.02)
    end
    assert_equal 0, running.server.stats[:write_timeouts]
    read << client.read_all(timeout: PATIENCE)
    assert_equal SLOW_BODY.bytesize, read.bytesize - read.index("\r\n\r\n") - 4
  end

  def test_a_client_that_takes_nothing_is_cut
    running = start(write_timeout_ms: 200) { |_env| [200, {}, [SLOW_BODY]] }
    client = connect(running, receive_buffer: 4_096).write(bytes("GET", "/", { "Connection" => "close" }))
    eventually("it is cut") { running.server.stats[:write_timeouts] == 1 }
    assert_raises(Errno::ECONNRESET) { client.read_all(timeout: PATIENCE) }
  end
end
