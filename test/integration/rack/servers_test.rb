# frozen_string_literal: true

# Rondo::Server as an object: several at once in one process, stopped from anywhere, beside the
# application's own threads.
# SPDX-License-Identifier: MIT

require "tmpdir"
require_relative "rack_case"

class RackServersTest < RackCase
  def test_addresses
    server = Rondo::Server.new(->(_env) { [200, {}, []] })
    url = server.listen("tcp://127.0.0.1:0")
    assert_match(%r{\Ahttp://127\.0\.0\.1:[1-9]\d*\z}, url)
    assert_equal [url], server.addresses
  end

  def test_several_listeners
    skip "it connects to the server itself" if XorProxy.on?
    Dir.mktmpdir do |directory|
      running = start { |env| [200, {}, [env["REMOTE_ADDR"]]] }
      path = File.join(directory, "server.sock")
      running.server.listen("unix://#{path}?mode=0600")
      assert_equal "127.0.0.1", get(connect(running)).body
      assert_equal 0o600, File.stat(path).mode & 0o777
      client = RawClient.new("unix://#{path}")
      @clients << client
      assert_equal 200, get(client).status
    end
  end

  def test_options_of_one_address
    server = Rondo::Server.new(->(_env) { [200, {}, []] })
    urls = [true, false].map { |on| server.listen("tcp://127.0.0.1:0?low_latency=#{on}") }
    on, off = urls.map do |url|
      BasicSocket.for_fd(server.descriptors.fetch(url)).tap { |socket| socket.autoclose = false }
                 .getsockopt(:TCP, :NODELAY).bool
    end
    assert on
    refute off
    Dir.mktmpdir do |directory|
      path = File.join(directory, "server.sock")
      server.listen("unix://#{path}?umask=0117")
      assert_equal 0o660, File.stat(path).mode & 0o777
    end
  end

  def test_an_address_in_use
    running = start { [200, {}, []] }
    other = Rondo::Server.new(->(_env) { [200, {}, []] })
    error = assert_raises(Rondo::AddressError) { other.listen("tcp://127.0.0.1:#{running.port}") }
    refute_includes error.message, "\n"
    assert_match(/in use/i, error.message)
  end

  def test_addresses_that_are_none
    server = Rondo::Server.new(->(_env) { [200, {}, []] })
    ["nonsense", "ftp://127.0.0.1:1", "tcp://127.0.0.1:99999", "tcp://256.1.1.1:0", "unix:///nonexistent/dir/x.sock",
     "tcp://127.0.0.1:x", ""].each do |uri|
      error = assert_raises(Rondo::AddressError, uri) { server.listen(uri) }
      refute_includes error.message, "\n"
    end
  end

  def test_settings_that_are_none
    app = ->(_env) { [200, {}, []] }
    { no_such_setting: 1, max_head_bytes: -1, keep_alive: 7, head_timeout_ms: "soon" }.each do |name, value|
      error = assert_raises(Rondo::SettingError, name.to_s) { Rondo::Server.new(app, name => value) }
      assert_includes error.message, name.to_s
    end
    assert_raises(Rondo::SettingError) { Rondo::Server.new(nil) }
  end

  def test_several_servers_in_one_process
    all = Array.new(4) { |n| start { |env| [200, {}, ["#{n}#{env["PATH_INFO"]}"]] } }
    clients = all.map { |running| connect(running) }
    20.times do |round|
      clients.each { |client| client.write(bytes("GET", "/#{round}")) }
      clients.each_with_index { |client, n| assert_equal "#{n}/#{round}", client.response.body }
    end
    all.first.stop
    clients.drop(1).each_with_index { |client, n| assert_equal "#{n + 1}/", get(client).body }
    all.each(&:stop)
    all.each { |running| refute_predicate running.thread, :alive? }
  end

  def test_an_application_may_ask_another_server_of_its_process
    back = start { [200, {}, ["from behind"]] }
    front = start do |_env|
      RawClient.open(back.url) { |client| [200, {}, [client.request(bytes("GET", "/")).body]] }
    end
    assert_equal "from behind", get(connect(front)).body
  end

  def test_run_returns_after_stop
    skip "it connects to the server itself" if XorProxy.on?
    running = start { [200, {}, []] }
    get(connect(running))
    running.server.stop
    assert running.thread.join(PATIENCE)
    assert_raises(SystemCallError) { RawClient.new(running.url) }
  end

  def test_stop_before_run
    server = Rondo::Server.new(->(_env) { [200, {}, []] })
    server.listen("tcp://127.0.0.1:0")
    server.stop
    thread = Thread.new { server.run }
    assert thread.join(PATIENCE), "it returns at once"
  end

  def test_stop_twice_and_after_the_end
    running = start { [200, {}, []] }
    2.times { running.server.stop }
    assert running.thread.join(PATIENCE)
    running.server.stop
    running.server.stop(force: true)
  end

  def test_stop_from_the_application
    running = nil
    running = start do |_env|
      running.server.stop
      [200, {}, ["the last"]]
    end
    client = connect(running)
    assert_equal "the last", get(client).body
    assert_predicate client, :closed?
    assert running.thread.join(PATIENCE)
  end

  def test_a_graceful_stop_finishes_what_is_in_flight
    entered = Queue.new
    ahead = Queue.new
    running = start do |env|
      if env["PATH_INFO"] == "/slow"
        entered << 1
        ahead.pop
      end
      [200, {}, ["done"]]
    end
    idle = connect(running)
    get(idle)
    client = connect(running)
    client.write(bytes("GET", "/slow"))
    take(entered)
    running.server.stop
    assert_predicate idle, :closed? # so the stop has begun
    ahead << 1
    response = client.response
    assert_equal "done", response.body
    assert_predicate response, :close?
    assert_predicate client, :closed?
    assert running.thread.join(PATIENCE)
  end

  def test_a_graceful_stop_finishes_a_long_response
    body = Body.new { |out| 100.times { out.call("x" * 20_000) } }
    running = start(lint: false) { |_env| [200, {}, body] }
    client = connect(running, receive_buffer: 4096)
    client.write(bytes("GET", "/", "Connection" => "close"))
    first = client.read_some
    running.server.stop
    assert_equal 2_000_000, (first + client.read_all).split("\r\n\r\n", 2)[1].count("x")
    assert running.thread.join(PATIENCE)
    assert_closed(body)
  end

  def test_a_forced_stop_ends_at_once_and_closes_bodies
    body = Body.new { |out| loop { out.call("x" * 20_000) } }
    running = start(lint: false) { |_env| [200, {}, body] }
    client = connect(running, receive_buffer: 4096)
    client.write(bytes("GET", "/"))
    client.read_some
    running.server.stop
    running.server.stop(force: true)
    assert running.thread.join(PATIENCE), "it ends"
    eventually("the body is closed") { body.closes == 1 }
  end

  def test_the_drain_has_a_deadline
    body = Body.new { |out| loop { out.call("x" * 20_000) } }
    running = start(lint: false, drain_timeout_ms: 50) { |_env| [200, {}, body] }
    client = connect(running, receive_buffer: 4096)
    client.write(bytes("GET", "/"))
    client.read_some
    running.server.stop
    assert running.thread.join(PATIENCE), "it ends"
    eventually("the body is closed") { body.closes == 1 }
  end

  def test_raise_into_the_thread_of_the_server
    skip "it connects to the server itself" if XorProxy.on?
    body = Body.new { |out| loop { out.call("x" * 20_000) } }
    running = start(lint: false) { |env| [200, {}, env["PATH_INFO"] == "/" ? ["text"] : body] }
    get(connect(running))
    stalled = connect(running, receive_buffer: 4096)
    stalled.write(bytes("GET", "/endless"))
    stalled.read_some
    running.thread.raise(IndexError, "from outside")
    error = assert_raises(IndexError) { running.thread.join(PATIENCE) }
    assert_equal "from outside", error.message
    eventually("the body is closed") { body.closes == 1 }
    assert_raises(SystemCallError) { RawClient.new(running.url) }
  end

  def test_a_raise_while_the_application_runs_ends_in_the_application
    needs_threads
    entered = Queue.new
    running = start(lint: false) do |env|
      next [200, {}, ["fine"]] unless env["PATH_INFO"] == "/slow"
      begin
        entered << Thread.current
        Queue.new.pop
      rescue IndexError => e
        [200, {}, ["rescued #{e.message}"]]
      end
    end
    client = connect(running)
    client.write(bytes("GET", "/slow"))
    take(entered).raise(IndexError, "from outside")
    assert_equal "rescued from outside", client.response.body
    assert_equal "fine", get(client).body
  end

  def test_killing_the_thread_of_the_server
    running = start { [200, {}, []] }
    get(connect(running))
    running.thread.kill
    assert running.thread.join(PATIENCE), "it dies"
  end

  def test_run_again_is_refused_while_it_runs
    running = start { [200, {}, []] }
    get(connect(running))
    before = Rondo::PubSub.core
    assert_raises(Rondo::Error) { running.server.run }
    assert_same before, Rondo::PubSub.core # it still takes part
    assert_equal 200, get(connect(running)).status
  end

  def test_threads_of_the_application_progress
    count = 0
    ended = false
    running = start { |_env| [200, {}, [count.to_s]] }
    worker = Thread.new { count += 1 until ended }
    client = connect(running)
    first = get(client).body.to_i
    eventually("the thread gets on beside requests") { get(client).body.to_i > first + 1000 }
  ensure
    ended = true
    worker&.join
  end

  def test_requests_progress_beside_a_spinning_thread
    ended = false
    running = start { [200, {}, ["text"]] }
    worker = Thread.new { nil until ended }
    client = connect(running)
    8.times { assert_equal "text", get(client).body }
  ensure
    ended = true
    worker&.join
  end

  def test_many_clients_on_many_threads
    running = start { |env| [200, {}, [env["PATH_INFO"], env["rack.input"]&.read.to_s]] }
    threads = Array.new(16) do |n|
      Thread.new do
        RawClient.open(running.url) do |client|
          (0...50).count { |m| post(client, "/#{n}/#{m}", "body#{m}").body == "/#{n}/#{m}body#{m}" }
        end
      end
    end
    assert_equal([50] * 16, threads.map { |thread| value_of(thread) })
  end

  def test_stats
    running = start { [200, {}, ["text"]] }
    client = connect(running)
    3.times { get(client) }
    stats = running.server.stats
    assert(stats.values.all?(Integer))
    assert_operator stats[:requests], :>=, 3
    assert_equal [1, 1], stats.values_at(:connections, :accepted)
    assert_operator stats[:bytes_out], :>, 100
    client.close
    eventually("the connection is gone") { running.server.stats[:connections].zero? }
  end

  def test_a_server_that_is_forgotten
    20.times do
      server = Rondo::Server.new(->(_env) { [200, {}, []] })
      server.listen("tcp://127.0.0.1:0")
      thread = Thread.new { server.run }
      server.stop
      thread.join(PATIENCE) or flunk
    end
    before = Dir.children("/proc/self/fd").size
    3.times { GC.start }
    assert_operator Dir.children("/proc/self/fd").size, :<=, before
  end

  def test_a_child_of_the_application_does_not_serve
    running = start(lint: false) do |_env|
      reader, writer = IO.pipe
      pid = fork do
        reader.close
        writer.write("child")
        writer.close
        exit!(0)
      end
      writer.close
      text = reader.read
      Process.wait(pid)
      [200, {}, [text]]
    end
    client = connect(running)
    3.times { assert_equal "child", get(client).body }
  end

  def test_a_child_neither_asks_nor_stops_the_parents_server
    running = start(lint: false) do |_env|
      reader, writer = IO.pipe
      pid = fork do
        @running.first.server.stop
        assert_raises(Rondo::Error) { @running.first.server.stats }.message.then { |message| writer.write(message) }
        exit!(0)
      end
      writer.close
      Process.wait(pid)
      [200, {}, [reader.read]]
    end
    client = connect(running)
    2.times { assert_equal "this server belongs to the parent process", get(client).body }
  end

  def test_fiber_locals_hold_during_a_call_and_its_body
    running = start(lint: false) do |_env|
      Thread.current[:mark] = Object.new.object_id
      marks = [Thread.current[:mark]]
      body = Body.new do |out|
        200.times do
          marks << Thread.current[:mark]
          out.call("x" * 20_000)
        end
        out.call("marks: #{marks.uniq.size}")
      end
      [200, {}, body]
    end
    clients = Array.new(5) { connect(running, receive_buffer: 4096) }
    clients.each { |client| client.write(bytes("GET", "/", "Connection" => "close")) }
    clients.each { |client| assert_includes client.read_all[-60..], "marks: 1" }
  end
end
