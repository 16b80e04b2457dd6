# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Rows 40-42: clients that are slow, stop reading, leave, flood or take all descriptors. Small
# timeouts make the server answer soon; the tests wait for that answer and assert no durations.

require "json"
require "minitest/autorun"
require_relative "../support/raw_client"
require_relative "../support/server_process"

class TestResources < Minitest::Test
  APP = File.expand_path("echo.ru", __dir__)
  GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
  # Even on a busy machine, a whole request that is sent at once arrives within this time.
  QUICK = { head_timeout_ms: 1000, body_timeout_ms: 1000, keep_alive_timeout_ms: 1000, write_timeout_ms: 1000,
            linger_timeout_ms: 500 }.freeze

  # ASan keeps freed memory for a while.
  MEMORY_KIB = ENV.values_at("LD_PRELOAD", "RONDO_TEST_PRELOAD").join.include?("asan") ? 512 * 1024 : 64 * 1024

  @servers = {}
  class << self
    def server(settings)
      @servers[settings] ||= ServerProcess.new(APP, settings: settings)
    end

    attr_reader :servers
  end
  Minitest.after_run { servers.each_value(&:stop) }

  # Row 40. The deadline is absolute: a trickle does not move it.
  def test_40_a_head_that_trickles_is_refused
    with_client(QUICK) do |client|
      client.write("GET / HTTP/1.1\r\nHost: a\r\n")
      trickle(client) { |i| "X-#{i}: y\r\n" }
      assert_equal 408, client.response.status
      assert_predicate client, :closed?
    end
  end

  def test_40_a_head_that_stops_is_refused
    with_client(QUICK) do |client|
      client.write("GET / HTTP/1.1\r\nHo")
      assert_equal 408, client.response.status
      assert_predicate client, :closed?
    end
  end

  def test_40_the_head_deadline_counts_anew_on_a_kept_connection
    with_client(QUICK) do |client|
      assert_equal 200, client.request(GET).status
      client.write("GET / HTT")
      assert_equal 408, client.response.status
    end
  end

  def test_40_a_body_that_stops_is_refused
    ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhel"].each do |rest|
      with_client(QUICK) do |client|
        client.write("POST / HTTP/1.1\r\nHost: a\r\n#{rest}")
        assert_equal 408, client.response.status
        assert_predicate client, :closed?
      end
    end
  end

  def test_40_a_body_below_the_minimum_rate_is_refused
    with_client({ body_timeout_ms: 20_000, body_min_rate: 100_000, body_min_rate_after_ms: 300 }) do |client|
      client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
      trickle(client) { "b" }
      assert_equal 408, client.response.status
      assert_predicate client, :closed?
    end
  end

  def test_40_an_idle_connection_is_closed_without_words
    with_client(QUICK) do |client|
      assert_equal 200, client.request(GET).status
      assert_predicate client, :closed?
    end
  end

  def test_40_a_connection_without_a_request_is_closed
    with_client(QUICK) do |client|
      bytes = client.read_all
      assert bytes.empty? || bytes.start_with?("HTTP/1.1 408"), bytes
    end
  end

  def test_40_a_reader_that_stops_costs_bounded_memory_and_is_dropped
    server = self.class.server(QUICK)
    with_client(QUICK) { |client| client.request(GET) }
    before = server.resident_kib
    clients = Array.new(8) { RawClient.new(server.url, receive_buffer: 4096) }
    clients.each { |client| client.write("GET /count/endless HTTP/1.1\r\nHost: a\r\n\r\n") }
    eventually("all bodies are closed") { counters(QUICK)["closed"] >= 8 }
    assert_operator server.resident_kib - before, :<, MEMORY_KIB
    assert_equal 200, ask(QUICK)
  ensure
    clients&.each(&:close)
  end

  def test_40_a_pipelining_client_that_never_reads_is_bounded
    server = self.class.server(QUICK)
    with_client(QUICK) { |client| client.request(GET) }
    before = server.resident_kib
    with_client(QUICK, receive_buffer: 4096) do |client|
      flood(client, GET * 500)
      assert_operator server.resident_kib - before, :<, MEMORY_KIB
    end
    assert_equal 200, ask(QUICK)
  end

  def test_40_kept_connections_do_not_starve_new_ones
    with_client({}) do |busy|
      busy.write(GET * 200)
      assert_equal 200, ask({})
      200.times { assert_equal 200, busy.response.status }
    end
  end

  # Row 41.
  def test_41_a_half_closed_client_gets_its_answer
    { GET => 1, GET * 3 => 3, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" => 1 }.each do |bytes, count|
      with_client({}) do |client|
        client.write(bytes).half_close
        count.times { assert_equal 200, client.response.status }
        assert_predicate client, :closed?
      end
    end
  end

  def test_41_a_half_closed_client_gets_a_long_answer
    with_client({}) do |client|
      client.write("GET /large?3000000 HTTP/1.1\r\nHost: a\r\n\r\n").half_close
      assert_equal 3_000_000, client.response.body.bytesize
      assert_predicate client, :closed?
    end
  end

  # The client has many bytes in flight when the refusal comes. A reset would discard the answer.
  def test_41_a_refusal_arrives_although_much_is_unread
    head = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000000\r\n\r\n"
    bad = "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
    [[head, 413], [bad, 400]].each do |bytes, status|
      5.times do
        with_client({}) do |client|
          client.write(bytes)
          push(client, "z" * 200_000)
          assert_equal status, client.response.status
        end
      end
    end
  end

  # Row 42.
  def test_42_garbage_does_not_stop_the_server
    random = Random.new(42)
    60.times do |i|
      with_client({}) do |client|
        bytes = random.bytes(1 + random.rand(20_000))
        bytes = GET[0, i] + bytes if i.odd?
        push(client, bytes)
        (i % 3).zero? ? client.reset : client.half_close
      end
    end
    assert_equal 200, ask({})
    assert_predicate self.class.server({}), :alive?
  end

  def test_42_clients_that_leave_before_their_answer_raise_no_signal
    40.times do
      with_client({}) do |client|
        client.write("GET /large?500000 HTTP/1.1\r\nHost: a\r\n\r\n" * 3)
        client.reset
      end
    end
    assert_equal 200, ask({})
    refute_match(/SIGPIPE|EPIPE|ECONNRESET|Broken pipe/, self.class.server({}).log)
  end

  def test_42_without_descriptors_the_server_waits_quietly_and_recovers
    ServerProcess.run(APP, spawn: { rlimit_nofile: [64, 64] }) do |server|
      kept = RawClient.new(server.url)
      assert_equal 200, kept.request(GET).status
      crowd = Array.new(100) { RawClient.new(server.url) }
      assert_equal 200, kept.request(GET).status
      assert_operator share_of_cpu(server, 1.5), :<, 0.2
      assert_equal 200, kept.request(GET).status
      crowd.each(&:close)
      eventually("new connections are served again") { serves?(server) }
      assert_equal 200, kept.request(GET).status
    ensure
      kept&.close
      crowd&.each(&:close)
    end
  end

  private

  def with_client(settings, **options, &block)
    RawClient.open(self.class.server(settings).url, **options, &block)
  end

  def ask(settings)
    with_client(settings) { |client| return client.request(GET).status }
  end

  def serves?(server)
    RawClient.open(server.url) { |client| return client.request(GET, timeout: 2).status == 200 }
  rescue RawClient::Timeout, EOFError, SystemCallError
    false
  end

  def counters(settings)
    with_client(settings) do |client|
      return Hash.new(0).merge(JSON.parse(client.request("GET /__counters HTTP/1.1\r\nHost: a\r\n\r\n").body))
    end
  end

  # Sends a few bytes now and then until the server has answered. The pauses make the client slow; no test waits for
  # them.
  def trickle(client)
    answered = 200.times.any? do |i|
      client.write(yield(i))
      client.socket.wait_readable(0.05)
    end
    assert answered, "the server lets a trickle go on"
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  # Sends as many bytes as the server takes, up to the whole string.
  def push(client, bytes)
    client.write(bytes, timeout: 1)
  rescue Errno::EPIPE, Errno::ECONNRESET, RawClient::Timeout
    nil
  end

  # Sends until the server takes no more bytes, or has closed.
  def flood(client, bytes)
    2000.times do
      break unless client.write_some(bytes).positive? || client.socket.wait_writable(0.3)
    end
  rescue Errno::EPIPE, Errno::ECONNRESET
    nil
  end

  def eventually(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + RawClient::DEADLINE
    until yield
      flunk "not before the deadline: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.02)
    end
  end

  # @return [Float] CPU time over elapsed time
  def share_of_cpu(server, seconds)
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    before = server.cpu_seconds
    IO.select(nil, nil, nil, seconds)
    (server.cpu_seconds - before) / (Process.clock_gettime(Process::CLOCK_MONOTONIC) - started)
  end
end
