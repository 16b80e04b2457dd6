# frozen_string_literal: true

# Full and partial hijack: the application gets a real IO that starts with the bytes that were already read, and the
# server never touches the connection again.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackHijackTest < RackCase
  def hijacking(lint: false, **options)
    serve(lint: lint, **options) do |env|
      yield env["rack.hijack"].call, env
      [-1, {}, []]
    end
  end

  def test_it_is_announced
    client = serve(lint: false) do |env|
      [200, {}, [env["rack.hijack?"].inspect, env["rack.hijack"].respond_to?(:call).inspect]]
    end
    assert_equal "truetrue", get(client).body
  end

  def test_a_real_io
    client = hijacking do |io|
      io.write("#{io.class} #{io.is_a?(IO)} #{io.fileno > 2}")
      io.close
    end
    client.write(bytes("GET", "/"))
    assert_equal "#{XorProxy.on? ? "UNIXSocket" : "TCPSocket"} true true", client.read_all
  end

  def test_behind_lint
    running = start(lambda do |env|
      io = env["rack.hijack"].call
      io.write("raw bytes")
      io.close
      [200, {}, []]
    end)
    client = connect(running)
    client.write(bytes("GET", "/"))
    assert_equal "raw bytes", client.read_all
  end

  def test_twice_gives_the_same_io
    same = Queue.new
    client = hijacking do |io, env|
      same << env["rack.hijack"].call.equal?(io)
      io.close
    end
    client.write(bytes("GET", "/"))
    assert_equal "", client.read_all
    assert take(same)
  end

  class Late < StandardError; end

  # It comes when `for_fd` returns. The number of the descriptor must be free then: somebody else gets it.
  def test_what_is_raised_when_the_io_is_there
    victims = Queue.new
    client = serve(lint: false) do |env|
      thread = Thread.current
      trace = TracePoint.new(:c_return) do |point|
        next unless point.method_id == :for_fd && Thread.current == thread
        trace.disable
        Thread.new { thread.raise(Late) }.join
      end
      trace.enable { env["rack.hijack"].call }
    rescue Late
      victims << IO.pipe
      [200, {}, []]
    end
    client.write(bytes("GET", "/"))
    victim = take(victims).first
    assert_equal "", client.read_all
    5.times { GC.start }
    assert_predicate victim.stat, :pipe?
  end

  def test_bytes_that_were_read_ahead_come_first
    client = hijacking do |io|
      io.write(io.gets + io.read(5) + io.readpartial(100))
      io.close
    end
    client.write("#{bytes("GET", "/")}line\n12345more")
    assert_equal "line\n12345more", client.read_all
  end

  def test_nonblocking_reads_see_the_bytes_that_were_read_ahead
    client = hijacking do |io|
      io.write(io.read_nonblock(100))
      io.close
    end
    client.write("#{bytes("GET", "/")}ahead")
    assert_equal "ahead", client.read_all
  end

  def test_a_conversation_in_another_thread
    client = hijacking do |io|
      Thread.new do
        while (line = io.gets)
          io.write(line.upcase)
        end
        io.close
      end
    end
    client.write(bytes("GET", "/"))
    3.times do |n|
      client.write("line #{n}\n")
      assert_equal "LINE #{n}\n", client.read_some
    end
    client.half_close
    assert_equal "", client.read_all
  end

  # A fiber of the application belongs to the call of its thread; another thread does not.
  def test_a_fiber_takes_it_and_another_thread_does_not
    errors = Queue.new
    client = serve(lint: false) do |env|
      Thread.new { errors << hijack_error(env) }.join
      Fiber.new { env["rack.hijack"].call.tap { |io| io.write("mine") }.close }.resume
      [-1, {}, []]
    end
    client.write(bytes("GET", "/"))
    assert_equal "mine", client.read_all
    assert_match(/on its thread\z/, take(errors).message)
  end

  def hijack_error(env)
    env["rack.hijack"].call
    nil
  rescue IOError => e
    e
  end

  def test_the_server_leaves_it_alone
    ios = Queue.new
    client = serve(lint: false, head_timeout_ms: 3000, keep_alive_timeout_ms: 3000) do |env|
      env["PATH_INFO"] == "/" ? (ios << env["rack.hijack"].call) && [200, {}, ["never"]] : [200, {}, ["here"]]
    end
    client.write(bytes("GET", "/"))
    io = take(ios)
    other = connect
    # The other connection outlives its deadline. So would the hijacked one, if it had a deadline.
    get(other, "/other")
    assert_predicate other, :closed?
    client.write("GET / HTTP/1.1\r\n\r\nnot for the server\n")
    assert_equal "GET / HTTP/1.1\r\n", io.gets
    io.write("by the application")
    io.close
    assert_equal "by the application", client.read_all
  end

  def test_what_is_returned_afterwards_is_ignored
    body = Body.new("never")
    client = serve(lint: false) do |env|
      io = env["rack.hijack"].call
      io.write("raw")
      io.close
      [200, { "x" => "y" }, body]
    end
    client.write(bytes("GET", "/"))
    assert_equal "raw", client.read_all
    assert_closed(body)
  end

  def test_raising_after_the_hijack_is_logged_and_sends_nothing
    client = serve(lint: false) do |env|
      io = env["rack.hijack"].call
      io.write("raw")
      io.close
      raise "after the hijack"
    end
    client.write(bytes("GET", "/"))
    assert_equal "raw", client.read_all
    eventually("it is logged") { log.include?("after the hijack") }
  end

  def test_after_earlier_responses_of_the_connection
    client = serve(lint: false) do |env|
      next [200, {}, ["first"]] if env["PATH_INFO"] == "/first"
      io = env["rack.hijack"].call
      io.write("second")
      io.close
      [200, {}, []]
    end
    client.write(bytes("GET", "/first") + bytes("GET", "/"))
    assert_equal "first", client.response.body
    assert_equal "second", client.read_all
  end

  def test_with_a_request_body
    client = serve(lint: false) do |env|
      text = env["rack.input"].read
      io = env["rack.hijack"].call
      io.write("#{text}+#{io.read(4)}")
      io.close
      [200, {}, []]
    end
    client.write("#{bytes("POST", "/", {}, "body")}rest")
    assert_equal "body+rest", client.read_all
  end

  def test_too_late
    failures = Queue.new
    hijack = nil
    client = serve(lint: false) do |env|
      hijack = env["rack.hijack"]
      [200, {}, ["done"]]
    end
    get(client)
    begin
      hijack.call
    rescue IOError => e
      failures << e
    end
    assert_kind_of IOError, take(failures)
    assert_equal "done", get(client).body
  end

  def test_response_finished_and_hijack
    finished = Queue.new
    client = hijacking do |io, env|
      env["rack.response_finished"] << ->(*) { finished << 1 }
      io.close
    end
    client.write(bytes("GET", "/"))
    assert_equal "", client.read_all
    eventually("the server goes on") { @running.last.server.stats[:active].zero? }
    assert_operator finished.size, :<=, 1
  end

  def test_descriptors_are_given_back
    running = start(lint: false) do |env|
      env["rack.hijack"].call.close
      [200, {}, []]
    end
    before = nil
    20.times do |n|
      RawClient.open(running.url) do |client|
        client.write(bytes("GET", "/"))
        client.read_all
      end
      before = Dir.children("/proc/self/fd").size if n == 4
    end
    eventually("descriptors are closed") { Dir.children("/proc/self/fd").size <= before + 2 }
    eventually("connections are forgotten") { running.server.stats[:connections].zero? }
  end

  # Partial hijack

  def test_partial
    client = serve do |_env|
      taker = lambda do |io|
        io.write("raw part")
        io.close
      end
      [200, { "content-type" => "text/x", "x-seen" => "1", "rack.hijack" => taker }, []]
    end
    client.write(bytes("GET", "/"))
    received = client.read_all
    head, rest = received.split("\r\n\r\n", 2)
    assert_match(%r{\AHTTP/1\.1 200 OK\r\n}, head)
    assert_match(/^x-seen: 1\r?$/, head)
    refute_match(/rack\.hijack|transfer-encoding|content-length/i, head)
    assert_equal "raw part", rest
  end

  def test_partial_closes_the_body_that_came_with_it
    body = Body.new("never")
    client = serve(lint: false) do |_env|
      [200, { "rack.hijack" => ->(io) { io.close } }, body]
    end
    client.write(bytes("GET", "/"))
    refute_includes client.read_all, "never"
    assert_closed(body)
  end

  def test_an_upgrade_by_partial_hijack
    client = serve(lint: false) do |_env|
      taker = lambda do |io|
        io.write(io.read(5).upcase)
        io.close
      end
      [101, { "upgrade" => "shout", "connection" => "upgrade", "rack.hijack" => taker }, []]
    end
    client.write("#{bytes("GET", "/", "Upgrade" => "shout", "Connection" => "upgrade")}hello")
    received = client.read_all
    assert_match(%r{\AHTTP/1\.1 101 }, received)
    assert_match(/^upgrade: shout\r$/, received)
    assert_match(/^connection: upgrade\r$/, received)
    assert received.end_with?("\r\n\r\nHELLO")
  end

  def test_an_upgrade_by_a_streaming_body
    client = serve(lint: false) do |_env|
      taker = lambda do |stream|
        stream.write(stream.read(5).upcase)
        stream.close
      end
      [101, { "upgrade" => "shout", "connection" => "upgrade" }, taker]
    end
    client.write("#{bytes("GET", "/", "Upgrade" => "shout", "Connection" => "upgrade")}hello")
    received = client.read_all
    assert_match(%r{\AHTTP/1\.1 101 }, received)
    assert received.end_with?("\r\n\r\nHELLO")
  end
end
