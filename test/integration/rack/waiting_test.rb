# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# What an application may have around a call that waits for its client (a body after 100 Continue,
# a part that a slow reader does not take): fibers of its own, enumerators, a Timeout.
# The waiting itself is in ext/rondo/ruby/rb_wait.c; see also input_test.rb and bodies_test.rb.

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

  # Reads a whole response after another client was served beside it.
  def assert_served_beside(slow)
    3.times { assert_equal "quick", get(connect, "/quick").body }
    assert_operator @made, :<, PARTS, "the body waits"
    assert_complete(slow)
    assert_equal "quick", get(connect, "/quick").body
  end

  # Looks at the end only: taking 15 MB apart again with every read is slow.
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
end
