# frozen_string_literal: true

# Streaming bodies: call(stream) with everything that Rack requires of the stream, also from other threads and after the
# call has returned.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "objspace"

class RackStreamTest < RackCase
  # A streaming body that can be closed.
  class Streaming
    attr_reader :closes

    def initialize(&call)
      @call = call
      @closes = 0
    end

    def call(stream)
      @call.call(stream)
    end

    def close
      @closes += 1
    end
  end

  def streaming(lint: true, headers: {}, **options, &call)
    serve(->(_env) { [200, headers, call] }, lint: lint, **options)
  end

  # Reads until the text has come; returns everything that came.
  def read_until(client, text)
    received = +""
    received << client.read_some until received.include?(text)
    received
  end

  def test_write_append_flush_close
    returned = []
    client = streaming do |stream|
      returned << stream.write("one")
      returned << (stream << "two" << "three").equal?(stream)
      stream.flush
      stream.close
    end
    response = get(client)
    assert_equal ["onetwothree", :chunked], [response.body, response.framing]
    assert_equal 3, returned[0]
    assert_equal 200, get(client).status
  end

  def test_without_lint_append_gives_the_stream
    client = streaming(lint: false) { |stream| (stream << "a" << "b").close }
    assert_equal "ab", get(client).body
  end

  def test_1_0_ends_with_the_connection
    client = streaming do |stream|
      stream.write("text")
      stream.close
    end
    response = get(client, "/", version: "1.0")
    assert_equal ["text", :close], [response.body, response.framing]
  end

  def test_a_given_length
    client = streaming(headers: { "content-length" => "4" }) do |stream|
      stream.write("text")
      stream.close
    end
    response = get(client)
    assert_equal ["text", :length], [response.body, response.framing]
  end

  def test_each_write_leaves_at_once
    ahead = Queue.new
    client = streaming do |stream|
      stream.write("first")
      ahead.pop
      stream.write("second")
      stream.close
    end
    client.write(bytes("GET", "/"))
    refute_includes read_until(client, "first"), "second"
    ahead << 1
    read_until(client, "\r\n0\r\n\r\n")
  end

  def test_reading_the_request
    read = Queue.new
    client = streaming(lint: false) do |stream|
      read << [stream.read(2), stream.gets, stream.read, stream.read(1)]
      stream.close_read
      begin
        stream.read
      rescue IOError => e
        read << e.message
      end
      stream.write("done")
      stream.close
    end
    assert_equal "done", post(client, "/", "abc\ndef").body
    assert_equal ["ab", "c\n", "def", nil], take(read)
    assert_match(/read/, take(read))
  end

  def test_close_write_ends_the_response
    states = []
    client = streaming(lint: false) do |stream|
      states << stream.closed?
      stream.write("text")
      stream.close_write
      begin
        stream.write("more")
      rescue IOError => e
        states << e.class
      end
      stream.close
      stream.close
      states << stream.closed?
    end
    assert_equal "text", get(client).body
    assert_equal 200, get(client).status
    assert_equal [false, IOError, true], states.first(3)
  end

  def test_an_empty_write_does_not_end_a_chunked_response
    client = streaming do |stream|
      stream.write("a")
      stream.write("")
      stream.write("b")
      stream.close
    end
    assert_equal "ab", get(client).body
  end

  def test_large_writes
    block = Random.bytes(1 << 20)
    client = streaming do |stream|
      5.times { stream.write(block) }
      stream.close
    end
    client.write(bytes("GET", "/", "Connection" => "close"))
    assert_operator client.read_all.bytesize, :>, 5 << 20
  end

  def test_what_is_written_may_change_afterwards
    text = +"a" * 50_000
    client = streaming(lint: false) do |stream|
      stream.write(text)
      text.replace("b" * 50_000)
      stream.write(text)
      stream.close
    end
    body = get(client).body
    assert_equal [50_000, 50_000], [body.count("a"), body.count("b")]
  end

  def test_it_stays_open_after_the_call_and_another_thread_finishes_it
    streams = Queue.new
    client = serve(lint: false) do |env|
      env["PATH_INFO"] == "/" ? [200, {}, ->(stream) { streams << stream }] : [200, {}, ["here"]]
    end
    client.write(bytes("GET", "/"))
    stream = take(streams)
    assert_equal "here", get(connect, "/other").body
    writer = Thread.new do
      3.times { |n| stream.write("part#{n};") }
      stream.close
    end
    assert_equal "part0;part1;part2;", client.response.body
    value_of(writer)
    assert_equal "here", get(client, "/other").body
  end

  def test_closed_while_another_thread_waits_for_the_client
    writer = nil
    begun = Queue.new
    client = streaming(lint: false) do |stream|
      writer = Thread.new { stream.write("x" * 8_000_000) }
      begun.pop
      eventually("it waits") { writer.stop? }
      stream.close
    end
    client.write(bytes("GET", "/")).await("xxx")
    begun << true
    assert_equal 8_000_000, client.response.body.bytesize
    assert_equal 8_000_000, value_of(writer)
  end

  # Of most clients: a busy kernel may deliver some bytes later.
  def test_its_end_leaves_at_once_though_the_only_thread_is_in_the_application
    skip "the proxy takes its time" if XorProxy.on?
    streams = Queue.new
    gate = Queue.new
    running = start(lint: false, max_threads: 1) do |env|
      gate.pop if env["PATH_INFO"] == "/wait"
      [200, {}, env["PATH_INFO"] == "/stream" ? ->(stream) { streams << stream } : []]
    end
    there = Array.new(7) do |round|
      client = connect(running)
      client.write(bytes("GET", "/stream"))
      stream = take(streams)
      head = client.read_some
      waiting = connect(running).tap { |other| other.write(bytes("GET", "/wait")) }
      eventually("the thread is in the application") { running.server.stats[:busy] == 1 }
      sleep 0.02 + (round * 0.007) # the watch thread is in its poll
      stream.close
      at_once = client.socket.wait_readable(0)
      assert_match(/\r\n\r\n0\r\n\r\n\z/, head << client.read_some)
      gate << true
      assert_equal 200, waiting.response.status
      at_once
    end
    assert_operator there.compact.size, :>=, 4
  end

  def test_a_pipelined_request_waits_for_the_open_stream
    streams = Queue.new
    client = serve(lint: false) do |env|
      env["PATH_INFO"] == "/" ? [200, {}, ->(stream) { streams << stream }] : [200, {}, ["next"]]
    end
    client.write(bytes("GET", "/") + bytes("GET", "/next"))
    stream = take(streams)
    stream << "first"
    Thread.new { stream.close }.join
    assert_equal(%w[first next], Array.new(2) { client.response.body })
  end

  def test_many_open_streams_written_by_many_threads
    streams = Queue.new
    running = start(->(_env) { [200, {}, ->(stream) { streams << stream }] }, lint: false)
    clients = Array.new(20) { connect(running).tap { |client| client.write(bytes("GET", "/")) } }
    threads = Array.new(20) do
      Thread.new do
        stream = take(streams)
        50.times { |n| stream.write("#{n},") }
        stream.close
      end
    end
    expected = (0...50).map { |n| "#{n}," }.join
    clients.each { |client| assert_equal expected, client.response.body }
    threads.each { |thread| value_of(thread) }
  end

  def test_a_writer_thread_waits_for_a_slow_reader
    streams = Queue.new
    running = start(->(env) { [200, {}, env["PATH_INFO"] == "/" ? ->(stream) { streams << stream } : ["here"]] }, lint: false)
    client = connect(running, receive_buffer: 4096)
    client.write(bytes("GET", "/", "Connection" => "close"))
    stream = take(streams)
    written = 0
    writer = Thread.new do
      600.times do
        stream.write("w" * 20_000)
        written += 1
      end
      stream.close
    end
    other = connect(running)
    seen = -1
    eventually("the writer waits") do
      still = seen == written
      seen = written
      still && Array.new(20) { get(other, "/other") } && seen == written
    end
    assert_operator written, :<, 600
    assert_equal 12_000_000, client.read_all.count("w")
    value_of(writer)
  end

  def test_a_client_that_leaves_makes_writing_raise
    failures = Queue.new
    client = serve(lint: false) do |_env|
      [200, {}, lambda { |stream|
        begin
          loop { stream.write("x" * 1000) }
        rescue IOError, SystemCallError => e
          failures << [e, stream.closed?]
          raise
        end
      }]
    end
    client.write(bytes("GET", "/"))
    client.read_some
    client.reset
    failure, closed = take(failures)
    assert_kind_of IOError, failure
    assert closed
    assert_equal 500, get(serve { raise "other" }).status
  end

  def test_a_client_that_leaves_is_seen_by_another_thread
    streams = Queue.new
    client = serve(->(_env) { [200, {}, ->(stream) { streams << stream }] }, lint: false)
    client.write(bytes("GET", "/"))
    stream = take(streams)
    stream.write("a")
    read_until(client, "a")
    client.reset
    eventually("it is closed") { stream.closed? }
    assert_raises(IOError) { stream.write("b") }
    stream.close
  end

  # The watch thread ends the connection while this thread uses it.
  def test_a_client_that_leaves_is_seen_by_a_body_that_computes
    seen = Queue.new
    client = serve(lint: false, max_threads: 1) do |env|
      next [200, {}, ["quick"]] if env["PATH_INFO"] == "/quick"
      next [200, {}, Enumerator.new { |out| loop { out << "x" } }] if env["PATH_INFO"] == "/each"
      [200, {}, lambda { |stream|
        stream.write("a")
        nil until stream.closed?
        seen << "left"
      }]
    end
    client.write(bytes("GET", "/"))
    read_until(client, "a")
    client.reset
    assert_equal "left", take(seen)
    client = connect
    client.write(bytes("GET", "/each"))
    read_until(client, "x")
    client.reset
    assert_equal "quick", get(connect, "/quick").body
  end

  def test_raising_cuts_the_response
    body = Streaming.new do |stream|
      stream.write("some")
      raise "in the middle"
    end
    client = serve(->(_env) { [200, {}, body] }, lint: false)
    client.write(bytes("GET", "/"))
    received = client.read_all
    assert_includes received, "some"
    refute_includes received, "\r\n0\r\n"
    eventually("it is logged") { log.include?("in the middle") }
    assert_closed(body)
  end

  def test_the_body_is_closed_once
    body = Streaming.new do |stream|
      stream.write("text")
      stream.close
    end
    client = serve(->(_env) { [200, {}, body] }, lint: false)
    get(client)
    eventually("it is closed") { body.closes.positive? }
    get(client)
    assert_closed(body, 2)
  end

  def test_the_response_is_finished_when_the_stream_is_closed_not_before
    streams = Queue.new
    finished = Queue.new
    client = serve(lint: false) do |env|
      env["rack.response_finished"] << ->(*arguments) { finished << arguments }
      [200, {}, ->(stream) { streams << stream }]
    end
    client.write(bytes("GET", "/"))
    stream = take(streams)
    get(connect(start { [200, {}, []] }))
    assert_empty finished
    stream.close
    _env, status, _headers, error = take(finished)
    assert_equal [200, nil], [status, error]
    assert_equal "", client.response.body
  end

  # Collects until the block is true. The stack of a thread may still refer to the last request it served. So each time,
  # calls wait for each other in as many threads as there are places.
  def collect_until(what)
    others = Array.new(PLACES) { connect }
    eventually(what) do
      GC.start
      others.each { |other| other.write(bytes("GET", "/other")) }
      others.each(&:response)
      yield
    end
  end

  PLACES = 2

  # @return [Array] the answer of a call that waits for another one beside it
  def meet
    @inside ||= Queue.new
    @inside << true
    eventually("others are inside") { (@inside.size % PLACES).zero? }
    [200, {}, ["here"]]
  end

  # The server itself may be collected before.
  def test_a_stream_knows_the_objects_of_its_server
    streams = Queue.new
    client = serve(lint: false) { [200, {}, ->(stream) { streams << stream }] }
    client.write(bytes("GET", "/"))
    stream = take(streams)
    assert(ObjectSpace.reachable_objects_from(stream).any?(Rondo::Server::Core))
    stream.close
  end

  def test_a_forgotten_stream_ends_with_the_collector
    client = serve(lint: false, max_threads: PLACES) do |env|
      env["PATH_INFO"] == "/" ? [200, {}, ->(stream) { stream.write("left") && nil }] : meet
    end
    client.write(bytes("GET", "/"))
    read_until(client, "left")
    collect_until("the connection is closed") { client.socket.wait_readable(0) && client.read_all }
  end

  # Their bodies, too: a request that is never released would keep the server from draining.
  def test_forgotten_streams_with_request_bodies
    running = start(lint: false, max_threads: PLACES) do |env|
      next meet if env["PATH_INFO"] != "/"
      env["rack.input"].read(2)
      [200, {}, ->(stream) { stream.write("left") && nil }]
    end
    clients = Array.new(3) { connect(running).tap { |client| client.write(bytes("POST", "/", {}, "a body")) } }
    clients.each { |client| read_until(client, "left") }
    clients.each(&:close)
    collect_until("all requests are let go of") { running.server.stats[:active].zero? }
  end

  def test_each_wins_over_call
    body = Streaming.new { flunk }
    def body.each
      yield "each"
    end
    assert_equal "each", get(serve(->(_env) { [200, {}, body] }, lint: false)).body
  end

  def test_head_does_not_call
    body = Streaming.new { raise "called" }
    client = serve(->(_env) { [200, {}, body] }, lint: false)
    assert_equal 200, client.request(bytes("HEAD", "/"), head: true).status
    assert_equal 200, client.request(bytes("HEAD", "/"), head: true).status
    assert_closed(body, 2)
    refute_includes log, "called"
  end

  def test_its_inspect_is_short
    client = streaming(lint: false) do |stream|
      stream.write(stream.inspect)
      stream.close
    end
    assert_equal "#<Rondo::Stream>", get(client).body
  end

  def test_an_open_stream_and_a_graceful_stop
    streams = Queue.new
    client = serve(->(_env) { [200, {}, ->(stream) { streams << stream }] }, lint: false)
    client.write(bytes("GET", "/"))
    stream = take(streams)
    stream.write("before;")
    running = @running.last
    running.server.stop
    stream.write("after;")
    stream.close
    assert_equal "before;after;", client.response.body
    assert running.thread.join(PATIENCE), "the server ends"
  end

  # No client waits for the rest of its answer. The deadline of the drain is far away.
  def test_a_stop_does_not_wait_for_an_open_stream_without_a_client
    { "before" => %i[leave stop], "meanwhile" => %i[stop leave] }.each do |name, steps|
      streams = Queue.new
      client = serve(->(_env) { [200, {}, ->(stream) { streams << stream }] }, lint: false, drain_timeout_ms: 600_000)
      client.write(bytes("GET", "/"))
      stream = take(streams)
      stream.write("one")
      read_until(client, "one")
      running = @running.last
      steps.each do |step|
        next running.server.stop if step == :stop
        client.reset
        eventually("the client has gone") { stream.closed? }
      end
      assert running.thread.join(PATIENCE), "the server ends, its client gone #{name}"
      assert_raises(IOError) { stream.write("two") }
      stream.close
    end
  end

  # Calls do work of their own, even if no client listens.
  def test_a_stop_waits_for_a_call_without_a_client
    begun, gate = Queue.new, Queue.new
    done = false
    client = serve(lint: false, drain_timeout_ms: 600_000) do |_env|
      begun << true
      gate.pop
      done = true
      [200, {}, []]
    end
    client.write(bytes("GET", "/"))
    take(begun)
    client.reset
    running = @running.last
    running.server.stop
    gate << true
    assert running.thread.join(PATIENCE), "the server ends"
    assert done
  end
end
