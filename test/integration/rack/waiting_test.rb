# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What an application may have around a call that waits for its client (a body after 100 Continue,
# a part that a slow reader does not take): fibers of its own, enumerators, a Timeout.
# The waiting itself is in ext/rondo/binding/rb_wait.c; see also input_test.rb and bodies_test.rb.

require_relative "rack_case"
require "timeout"

class WaitingTest < RackCase
  # More than the buffers of both kernels hold, so that the body really has to wait.
  PART = ("x" * 60_000).freeze
  PARTS = 250

  def setup
    super
    @made = 0
  end

  # Reads a whole response after another client was served meanwhile.
  def assert_served_beside(slow)
    3.times { assert_equal "quick", get(connect, "/quick").body }
    assert_operator @made, :<, PARTS, "the body waits"
    assert_complete(slow)
    assert_equal "quick", get(connect, "/quick").body
  end

  # Checks only the end: parsing 15 MB again with every read is slow.
  def assert_complete(slow)
    answer = slow.read_all(timeout: PATIENCE)
    assert answer.end_with?("\r\n0\r\n\r\n"), "the response is whole"
    assert_operator answer.bytesize, :>, PART.bytesize * PARTS
  end

  def slow_request
    bytes("GET", "/slow", { "Connection" => "close" })
  end

  def slow_client(running)
    client = connect(running, receive_buffer: 16_384)
    client.write(slow_request)
    client.socket.wait_readable(PATIENCE) or flunk "nothing comes"
    client
  end

  def start_slow(&each)
    start(lint: false) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      [200, {}, Body.new { |out| each.call(->(part) { count(out, part) }) }]
    end
  end

  def count(out, part)
    @made += 1
    out.call(part)
  end

  def expecting(length)
    bytes("POST", "/", { "Expect" => "100-continue", "Content-Length" => length })
  end

  def test_parts_from_inside_a_fiber_of_the_application
    running = start_slow do |out|
      Fiber.new { PARTS.times { out.call(PART) } }.resume
    end
    assert_served_beside(slow_client(running))
  end

  def test_parts_from_an_external_enumerator
    running = start_slow do |out|
      parts = Enumerator.new { |yielder| PARTS.times { yielder << PART } }
      loop { out.call(parts.next) }
    end
    assert_served_beside(slow_client(running))
  end

  def test_parts_from_a_fiber_that_is_resumed_again_and_again
    running = start_slow do |out|
      fiber = Fiber.new do
        PARTS.times do
          out.call(PART)
          Fiber.yield
        end
      end
      fiber.resume while fiber.alive?
    end
    assert_served_beside(slow_client(running))
  end

  def test_the_input_by_an_external_enumerator
    client = serve(lint: false) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      lines = env["rack.input"].each
      [200, {}, [lines.next, lines.next]]
    end
    assert_equal 100, client.request(expecting(4), interim: true).status
    assert_equal "quick", get(connect, "/quick").body
    assert_equal "a\nb\n", client.request("a\nb\n").body
  end

  def test_the_input_read_by_another_thread
    client = serve(lint: false) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      [200, {}, [Thread.new { env["rack.input"].read }.value]]
    end
    response = client.request("#{expecting(5)}hello", interim: true)
    assert_equal [200, "hello"], [response.status, response.body]
  end

  def test_a_timeout_around_a_body_that_does_not_come_ends_only_that_request
    running = start(lint: false) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      Timeout.timeout(0.05) { env["rack.input"].read }
      [200, {}, []]
    rescue Timeout::Error
      [503, {}, ["too slow"]]
    end
    client = connect(running)
    assert_equal 100, client.request(expecting(5), interim: true).status
    # The client never sends its body: the application's own deadline has to end the wait.
    assert_equal 503, client.response.status
    assert_equal "quick", get(connect, "/quick").body
  end

  def test_a_timeout_around_a_part_that_is_not_taken_ends_only_that_response
    failures = Queue.new
    running = start_slow do |out|
      Timeout.timeout(0.05) { loop { out.call(PART) } }
    rescue StandardError => e
      failures << e
      raise
    end
    slow_client(running)
    eventually("the timeout") { !failures.empty? || !running.thread.alive? }
    assert_predicate running.thread, :alive?, "the server goes on"
    assert_kind_of Timeout::Error, take(failures)
    assert_equal "quick", get(connect, "/quick").body
  end

  def test_a_timeout_that_is_not_reached
    client = serve(lint: false) do |env|
      [200, {}, [Timeout.timeout(PATIENCE) { env["rack.input"].read }]]
    end
    assert_equal 100, client.request(expecting(5), interim: true).status
    assert_equal "hello", client.request("hello").body
    assert_equal 200, get(client).status
  end

  def test_more_bodies_wait_than_may_be_parked
    running = start(lint: false, max_parked_bodies: 1) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      [200, {}, Body.new { |out| PARTS.times { out.call(PART) } }]
    end
    clients = Array.new(3) { connect(running, receive_buffer: 16_384).write(slow_request) }
    clients.map { |client| Thread.new { assert_complete(client) } }.each { |reader| value_of(reader) }
    assert_equal "quick", get(connect(running), "/quick").body
  end

  # Clients that never continue.

  def unread_bodies(running, count)
    Array.new(count) { connect(running, receive_buffer: 4096).write(slow_request) }
  end

  def start_unread(**settings)
    start(lint: false, **settings) do |env|
      case env["PATH_INFO"]
      when "/quick" then [200, {}, ["quick"]]
      when "/read" then [200, {}, [env["rack.input"].read]]
      else [200, {}, Body.new { |out| loop { out.call(PART) } }]
      end
    end
  end

  def test_clients_that_do_not_read_stop_nobody
    running = start_unread(max_parked_bodies: 3, max_threads: 2)
    attackers = unread_bodies(running, 12)
    # After all of them; each one holds a place for two seconds at most.
    assert_equal "quick", get(connect(running), "/quick").body
    eventually("the bystander is served") { running.server.stats[:given_up] >= 7 }
    3.times { assert_equal "quick", get(connect(running), "/quick").body }
    eventually("others sit there and stay") { running.server.stats[:waiting].between?(3, 3 + 2) }
    line = /Gave up the client 127\.0\.0\.1: too many calls wait for their clients \(max_parked_bodies\); \d+ given up so far/
    eventually("it is logged") { log.match?(line) }
    assert_operator log.scan(line).size, :<=, running.server.stats[:given_up]
    refute_empty attackers
  end

  # Which of the two it is depends on when each one last took a byte.
  def test_a_client_that_is_given_up_sees_a_reset
    running = start_unread(max_parked_bodies: 1, max_threads: 2)
    clients = unread_bodies(running, 1)
    eventually("its body waits") { running.server.stats[:waiting] == 1 }
    clients += unread_bodies(running, 1)
    eventually("one is given up") { running.server.stats[:given_up] == 1 }
    eventually("it sees a reset") { clients.any? { |client| reset?(client) } }
  end

  def reset?(client)
    client.read_some(timeout: 0.01)
    false
  rescue RawClient::Timeout
    false
  rescue Errno::ECONNRESET
    true
  end

  def test_a_body_that_does_not_come_is_given_up_by_408
    running = start_unread(max_parked_bodies: 32, max_threads: 2)
    waiter = connect(running)
    waiter.write(bytes("POST", "/read", { "Expect" => "100-continue", "Content-Length" => 5 }))
    assert_equal 100, waiter.response(interim: true).status
    unread_bodies(running, 32)
    response = waiter.response(timeout: PATIENCE)
    assert_equal [408, "too many calls wait for their clients\n"], [response.status, response.body]
    assert_predicate waiter, :closed?
    assert_equal "quick", get(connect(running), "/quick").body
  end

  # Above a few, bodies are read completely before the call, so that no call waits for them.
  def test_many_clients_that_expect_a_100_and_send_nothing
    entered = Queue.new
    running = start(lint: false, max_parked_bodies: 64, max_threads: 2) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      entered << 1
      [200, {}, [env["rack.input"].read]]
    end
    clients = Array.new(20) { connect(running).write(expecting(5)) }
    clients.each { |client| assert_equal 100, client.response(interim: true).status }
    assert_equal "quick", get(connect(running), "/quick").body
    eventually("the early calls") { entered.size >= 2 }
    assert_equal 2, entered.size, "a thirty-second of max_parked_bodies"
    assert_equal 0, running.server.stats[:given_up]
    clients.each { |client| assert_equal "hello", client.request("hello").body }
    assert_equal 100, clients.last.request(expecting(5), interim: true).status
    eventually("there is room for an early call again") { entered.size == 21 }
    assert_equal "again", clients.last.request("again").body
  end

  def test_without_parked_bodies_no_call_begins_before_its_body
    entered = Queue.new
    client = serve(lint: false, max_parked_bodies: 0) do |env|
      entered << 1
      [200, {}, [env["rack.input"].read]]
    end
    assert_equal 100, client.request(expecting(5), interim: true).status
    assert_predicate entered, :empty?
    assert_equal "hello", client.request("hello").body
  end
end
