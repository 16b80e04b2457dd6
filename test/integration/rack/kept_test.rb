# frozen_string_literal: true

# Parts of a request that an application keeps beyond it: its env, rack.response_finished, rack.hijack, continuations,
# fibers. They must not affect the next request of the connection.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackKeptTest < RackCase
  def test_a_late_push_to_response_finished_calls_nobody
    called = Queue.new
    kept = nil
    client = serve(lint: false, max_threads: 1) do |env|
      kept&.push(->(late, *) { called << late["PATH_INFO"] })
      kept = env["rack.response_finished"]
      [200, {}, ["text"]]
    end
    %w[/a /b /c].each { |path| assert_equal "text", get(client, path).body }
    assert_empty called
  end

  def test_response_finished_is_an_array_of_every_request
    seen = []
    client = serve(lint: false) do |env|
      seen << env["rack.response_finished"]
      [200, {}, []]
    end
    3.times { get(client) }
    assert_equal [[], [], []], seen
    assert_equal 3, seen.map(&:object_id).uniq.size
  end

  def test_a_hijack_that_was_kept_is_over
    first = nil
    client = serve(lint: false) do |env|
      first ||= env["rack.hijack"]
      next [200, {}, ["first"]] if env["PATH_INFO"] == "/first"
      error = assert_raises(IOError) { first.call }
      [200, {}, [error.message]]
    end
    assert_equal "first", get(client, "/first").body
    2.times { assert_match(/only possible during the request/, get(client, "/next").body) }
  end

  def test_a_hijack_that_was_called_gives_its_io_for_ever
    hijacked = Queue.new
    same = Queue.new
    serve(lint: false, max_threads: 1) do |env|
      if env["PATH_INFO"] == "/hijack"
        @hijack = env["rack.hijack"]
        @io = @hijack.call
        hijacked << true
        next [-1, {}, []]
      end
      same << @hijack.call.equal?(@io) << Thread.new { @hijack.call.equal?(@io) }.value
      @io.write("still here")
      @io.close
      [200, {}, []]
    end.then do |client|
      client.write(bytes("GET", "/hijack"))
      take(hijacked)
      assert_equal 200, get(connect, "/after").status
      assert_equal "still here", client.read_all
    end
    assert_equal [true, true], [take(same), take(same)]
  end

  def test_hints_that_were_kept_go_nowhere
    first = nil
    client = serve(lint: false, early_hints: true) do |env|
      first ||= env["rack.early_hints"]
      first.call({ "link" => "</late.css>" }) unless env["PATH_INFO"] == "/first"
      [200, {}, ["text"]]
    end
    get(client, "/first")
    client.write(bytes("GET", "/next", "Connection" => "close"))
    refute_includes client.read_all, "late.css"
  end

  # ---- parts that belong to a thread ----

  ELSEWHERE = "elsewhere"

  # An object that is kept at /keep may be used at /use by the same thread alone. One thread calls the application and
  # another one stands by, and they change places now and then.
  def serve_keeping(&app)
    keeper = nil
    serve(lint: false, max_threads: 1) do |env|
      keeper = Thread.current if env["PATH_INFO"] == "/keep"
      next [200, {}, [ELSEWHERE]] if env["PATH_INFO"] == "/use" && Thread.current != keeper
      app.call(env)
    end
  end

  # @return [Array(String, String)] the answers of /keep, and of /use in the same thread
  def keep_and_use(client)
    eventually("one thread for both") do
      kept = get(client, "/keep").body
      used = yield
      [kept, used] unless used.end_with?(ELSEWHERE)
    end
  end

  def test_a_fiber_that_was_kept
    fiber = nil
    client = serve_keeping do |env|
      if env["PATH_INFO"] == "/keep"
        fiber = Fiber.new do
          kept = env["rack.hijack"]
          Fiber.yield "begun"
          kept.call
        rescue IOError => e
          e.message
        end
      end
      [200, {}, [fiber.resume]]
    end
    begun, said = keep_and_use(client) { get(client, "/use").body }
    assert_equal "begun", begun
    assert_match(/only possible during the request/, said)
  end

  def test_a_hijack_inside_of_a_fiber
    client = serve(lint: false) do |env|
      Fiber.new { env["rack.hijack"].call }.resume.tap { |io| io.write("raw") }.close
      [-1, {}, []]
    end
    client.write(bytes("GET", "/"))
    assert_equal "raw", client.read_all
  end

  def test_the_block_of_a_body_kept_by_a_fiber
    fiber = nil
    client = serve_keeping do |env|
      next [200, {}, [fiber.resume]] unless env["PATH_INFO"] == "/keep"
      [200, {}, Body.new do |out|
        fiber = Fiber.new do
          out.call("one")
          Fiber.yield
          out.call("late")
        rescue IOError => e
          e.message
        end
        fiber.resume
      end]
    end
    assert_equal ["one", "the response is over"], keep_and_use(client) { get(client, "/use").body }
  end

  # ---- continuations ----

  # Captured at the call of the block of `kept`, and called again by the next request.
  def jumping(&app)
    require "continuation"
    serve_keeping(&app)
  rescue LoadError
    skip "the library continuation is missing in this Ruby"
  end

  # The connection of the request that jumps is cut. An open stream of another client is not affected, and the server
  # continues.
  def assert_only_the_jumper_ends(client, logged = "a continuation of a finished request was called")
    bystander = connect
    bystander.write(bytes("GET", "/stream"))
    assert_includes bystander.read_some, "200 OK"
    refute_includes keep_and_use(client) { jump(client) }.last, "secret"
    assert_equal "after", get(connect, "/after").body
    @stream.write("the last part")
    @stream.close
    rest = +""
    rest << bystander.read_some until rest.include?("0\r\n\r\n")
    assert_includes rest, "the last part"
    refute_includes rest, "secret"
    eventually("it is logged") { log.include?(logged) }
  end

  # @return [String] the bytes until the connection was closed, or the answer of another thread
  def jump(client)
    received = +""
    client.write(bytes("GET", "/use"))
    while (part = client.read_some)
      received << part
      break if received.end_with?(ELSEWHERE)
    end
    received
  end

  def open_stream
    [200, {}, ->(stream) { @stream = stream }]
  end

  def test_a_continuation_of_a_call
    kept = nil
    client = jumping do |env|
      case env["PATH_INFO"]
      when "/keep"
        jumped = callcc { |continuation| (kept = continuation) && nil }
        [200, {}, [jumped || "kept"]]
      when "/stream" then open_stream
      when "/use" then kept.call("secret of the jumper")
      else [200, {}, ["after"]]
      end
    end
    assert_only_the_jumper_ends(client)
  end

  def test_a_continuation_of_a_body
    kept = nil
    each = lambda do |out|
      jumped = callcc { |continuation| (kept = continuation) && nil }
      out.call("part") unless jumped
    end
    client = jumping do |env|
      case env["PATH_INFO"]
      when "/keep" then [200, {}, Body.new(&each)]
      when "/stream" then open_stream
      when "/use" then kept.call("secret")
      else [200, {}, ["after"]]
      end
    end
    assert_only_the_jumper_ends(client)
  end

  # Its frames belong to an old call, but the hijack belongs to the call that runs.
  def test_a_continuation_that_calls_the_hijack_of_its_caller
    kept = nil
    client = jumping do |env|
      case env["PATH_INFO"]
      when "/keep"
        hijack = callcc { |continuation| (kept = continuation) && nil }
        hijack&.call
        [200, {}, ["kept"]]
      when "/stream" then open_stream
      when "/use" then kept.call(env["rack.hijack"])
      else [200, {}, ["after"]]
      end
    end
    assert_only_the_jumper_ends(client, "hijack is only possible during the request")
  end

  def test_a_continuation_that_is_called_within_its_request
    client = jumping do |_env|
      times = 0
      kept = callcc { |continuation| continuation }
      times += 1
      kept.call(kept) if times < 3
      [200, {}, [times.to_s]]
    end
    2.times { assert_equal "3", get(client).body }
  end
end
