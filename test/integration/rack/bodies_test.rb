# frozen_string_literal: true

# Bodies that are enumerated, arrays, files; which call waits for which; and that close runs once in every case.
# SPDX-License-Identifier: MIT

require "pathname"
require "tempfile"
require_relative "rack_case"

class RackBodiesTest < RackCase
  # A body that can be an Array.
  class ArrayBody < Body
    def to_ary
      close
      @parts
    end
  end

  def answer(body, status: 200, headers: {}, **options)
    serve(->(_env) { [status, headers, body] }, **options)
  end

  def with_file(content)
    Tempfile.create("rondo-body") do |file|
      file.binmode
      file.write(content)
      file.flush
      yield file.path
    end
  end

  # A body without an end; the block is called after every part.
  def endless(part)
    Body.new do |out|
      loop do
        out.call(part)
        yield
      end
    end
  end

  # Arrays

  def test_an_array_has_a_length
    response = get(answer(%w[one two three]))
    assert_equal ["onetwothree", :length, "11"], [response.body, response.framing, response.header("content-length")]
  end

  def test_an_empty_array
    response = get(answer([]))
    assert_equal ["", "0"], [response.body, response.header("content-length")]
  end

  # The body does not keep its promise: the client sees it by the end of the connection, the operator in the log.
  def test_an_answer_that_is_not_as_long_as_it_says
    { "10" => "fewer", "2" => "more" }.each do |length, which|
      client = serve(->(_env) { [200, { "content-length" => length }, %w[one two]] }, lint: false)
      client.write(bytes("GET", "/"))
      client.read_all
      eventually("it is logged") { log.include?("the application sent #{which} bytes than content-length says; 1 cut so far") }
      assert_equal 1, @running.last.server.stats[:answers_cut]
    end
  end

  def test_empty_parts
    assert_equal "ab", get(answer(["", "a", "", "b", ""])).body
  end

  def test_large_parts_are_unchanged
    parts = [Random.bytes(1_500_000), "small", Random.bytes(20_000)]
    assert get(answer(parts)).body == parts.join, "parts differ"
  end

  def test_a_part_may_change_after_it_was_given
    part = +"a" * 100_000
    client = serve do |_env|
      text = part.dup
      [200, {}, Body.new { |out| 3.times { |n| send_and_change(out, text, n.to_s * 100_000) } }]
    end
    assert get(client).body == "#{"a" * 100_000}#{"0" * 100_000}#{"1" * 100_000}", "parts differ"
  end

  def send_and_change(out, text, following)
    out.call(text)
    text.replace(following)
  end

  def test_frozen_and_shared_parts
    shared = "shared " * 5000
    client = answer([shared.freeze, shared])
    3.times { assert_equal shared * 2, get(client).body }
  end

  def test_to_ary
    body = ArrayBody.new("a", "b")
    response = get(answer(body))
    assert_equal ["ab", :length], [response.body, response.framing]
    eventually("it is closed") { body.closes.positive? }
  end

  # Rails raises here when the body is a part of a file.
  def test_to_ary_is_not_asked_where_the_length_is_known
    body = Body.new("a", "b")
    body.define_singleton_method(:to_ary) { raise LocalJumpError }
    response = get(answer(body, headers: { "content-length" => "2" }, lint: false))
    assert_equal [200, "ab", :length], [response.status, response.body, response.framing]
    assert_closed(body)
  end

  # Rails returns an Enumerator here when the body is an Enumerator.
  def test_to_ary_that_is_no_array
    [nil, %w[a b].each].each do |returned|
      body = Body.new("a", "b")
      body.define_singleton_method(:to_ary) { returned }
      response = get(answer(body, lint: false))
      assert_equal [200, "ab"], [response.status, response.body]
      assert_closed(body)
    end
  end

  # Enumerated bodies

  def test_each_is_chunked_on_1_1_and_ends_with_the_connection_on_1_0
    client = answer(Body.new("one", "", "two"))
    response = get(client)
    assert_equal ["onetwo", :chunked], [response.body, response.framing]
    response = get(client, "/", version: "1.0")
    assert_equal ["onetwo", :close], [response.body, response.framing]
  end

  def test_a_known_length_is_kept
    response = get(answer(Body.new("one", "two"), headers: { "content-length" => "6" }))
    assert_equal ["onetwo", :length], [response.body, response.framing]
  end

  def test_an_enumerator_is_a_body
    response = get(answer(Enumerator.new { |out| 3.times { |n| out << n.to_s } }, lint: false))
    assert_equal "012", response.body
  end

  def test_a_part_leaves_before_the_next_one_is_made
    ahead = Queue.new
    client = serve do |_env|
      [200, {}, Body.new do |out|
        out.call("first")
        ahead.pop
        out.call("second")
      end]
    end
    client.write(bytes("GET", "/"))
    received = +""
    received << client.read_some until received.include?("first")
    refute_includes received, "second"
    ahead << 1
    received << client.read_some until received.include?("second")
  end

  def test_parts_of_a_few_bytes_are_chunks_of_their_own
    client = answer(Body.new("a", "bc"))
    client.write(bytes("GET", "/", "Connection" => "close"))
    assert_operator client.read_all, :end_with?, "\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"
  end

  def test_a_client_that_does_not_read_holds_the_body_up
    pulled = 0
    part = "x" * 10_000
    body = endless(part) { pulled += 1 }
    client = connect(start(lint: false) { |env| [200, {}, env["PATH_INFO"] == "/endless" ? body : ["here"]] },
                     receive_buffer: 4096)
    client.write(bytes("GET", "/endless"))
    other = connect
    seen = -1
    eventually("the body is held up") do
      assert_equal "here", get(other).body
      still = pulled == seen
      seen = pulled
      # Ten answers to another client without a further part: the body waits.
      still && Array.new(10) { get(other).body } && pulled == seen
    end
    assert_operator pulled * part.bytesize, :<, 16 << 20
    before = pulled
    taken = 0
    taken += client.read_some.bytesize while taken < 20 << 20
    eventually("it goes on") { pulled > before }
    client.close
    eventually("it is closed") { body.closes == 1 }
  end

  def test_many_stalled_bodies_beside_a_quick_client
    body = -> { Body.new { |out| 200.times { out.call("y" * 20_000) } } }
    running = start(lint: false) { |env| [200, {}, env["PATH_INFO"] == "/long" ? body.call : ["here"]] }
    slow = Array.new(8) { connect(running, receive_buffer: 4096) }
    slow.each { |client| client.write(bytes("GET", "/long", "Connection" => "close")) }
    quick = connect
    50.times { assert_equal "here", get(quick).body }
    slow.each { |client| assert_equal 4_000_000, client.read_all.count("y") }
  end

  # Ten clients are owed the same String at once, and no call waits behind it.
  def test_a_large_string_for_slow_readers_beside_others
    large = Random.bytes(9_000_000).freeze
    running = start(lint: false) { |env| [200, {}, [env["PATH_INFO"] == "/large" ? large : "here"]] }
    slow = Array.new(10) { connect(running, receive_buffer: 4096) }
    slow.each { |client| client.write(bytes("GET", "/large")) }
    quick = connect
    20.times { assert_equal "here", get(quick).body }
    slow.first(2).each { |client| assert client.response.body == large, "the String differs" }
    slow.each(&:reset)
    assert_equal "here", get(quick).body
  end

  def test_a_client_that_leaves_stops_the_body
    pulled = 0
    body = endless("z" * 5000) { pulled += 1 }
    client = answer(body, lint: false)
    client.write(bytes("GET", "/"))
    client.read_some
    client.reset
    eventually("the body is closed") { body.closes.positive? }
    after = pulled
    assert_equal 200, get(serve { [200, {}, []] }).status
    assert_equal [after, 1], [pulled, body.closes]
  end

  # The block that each got.

  def test_the_block_is_over_with_the_response
    kept = nil
    client = serve(lint: false) do |_env|
      [200, {}, kept ? ["second"] : Body.new { |out| (kept = out).call("first") }]
    end
    assert_equal "first", get(client).body
    error = assert_raises(IOError) { kept.call("late") }
    assert_match(/over/, error.message)
    assert_equal "second", get(client).body
    assert_raises(IOError) { kept.call("later") }
  end

  def test_the_block_of_a_body_that_raised
    kept = nil
    client = answer(Body.new { |out| (kept = out) && raise("broken") }, lint: false)
    client.write(bytes("GET", "/"))
    client.read_all
    assert_raises(IOError) { kept.call("late") }
  end

  def test_the_block_on_another_thread
    body = Body.new { |out| %w[a b].each { |part| Thread.new { out.call(part) }.join } }
    assert_equal "ab", get(answer(body, lint: false)).body
  end

  def test_each_that_returns_while_another_thread_waits_for_the_client
    writer = nil
    begun = Queue.new
    client = answer(Body.new { |out| writer = thread_that_waits(out, begun) }, lint: false)
    client.write(bytes("GET", "/")).await("xxx")
    begun << true
    assert_equal 8_000_000, client.response.body.bytesize
    assert_equal :done, value_of(writer)
  end

  def thread_that_waits(out, begun)
    writer = Thread.new { out.call("x" * 8_000_000) || :done }
    begun.pop
    eventually("it waits") { writer.stop? }
    writer
  end

  def test_the_block_in_a_fiber_whose_client_leaves
    raised = Queue.new
    body = Body.new { |out| Fiber.new { endless_parts(out, raised) }.resume }
    client = answer(body, lint: false)
    client.write(bytes("GET", "/"))
    client.read_some
    client.reset
    assert_kind_of Rondo::ClientGone, raised.pop
  end

  def endless_parts(out, raised)
    loop { out.call("x" * 10_000) }
  rescue IOError => e
    raised << e
  end

  def test_a_body_that_raises_cuts_the_response
    body = Body.new do |out|
      out.call("some")
      raise "in the middle"
    end
    client = answer(body)
    client.write(bytes("GET", "/"))
    received = client.read_all
    assert_includes received, "some"
    refute_includes received, "\r\n0\r\n"
    eventually("it is logged") { log.include?("in the middle") }
    assert_closed(body)
    assert_predicate @running.last.thread, :alive?
  end

  def test_a_body_that_raises_before_its_first_part
    body = Body.new { raise "at once" }
    client = answer(body)
    client.write(bytes("GET", "/"))
    assert_includes ["", nil], client.read_all[/\r\n0\r\n/]
    assert_closed(body)
    eventually("it is logged") { log.include?("at once") }
  end

  def test_a_part_that_is_no_string
    body = Body.new("text", 5)
    client = answer(body, lint: false)
    client.write(bytes("GET", "/"))
    refute_includes client.read_all, "\r\n0\r\n"
    eventually("it is logged") { log.include?("5") }
    assert_closed(body)
  end

  def test_a_body_that_is_neither
    response = get(answer(Object.new, lint: false))
    assert_equal 500, response.status
    assert_equal 500, get(serve(lint: false) { |_env| [200, {}, nil] }).status
    assert_equal 500, get(serve(lint: false) { |_env| [200, {}, "a String"] }).status
  end

  def test_what_the_application_returns_is_no_response
    [nil, 5, [], [200, {}], [200, {}, [], 1], "200"].each do |returned|
      assert_equal 500, get(serve(lint: false) { |_env| returned }).status, returned.inspect
    end
  end

  # close

  def test_close_once
    { "GET" => 200, "HEAD" => 200, "POST" => 204, "PUT" => 304 }.each do |method, status|
      body = Body.new("text")
      client = answer(body, status: status, lint: status == 200)
      response = client.request(bytes(method, "/"), head: method == "HEAD")
      assert_equal status, response.status
      eventually("#{method} #{status} is closed") { body.closes.positive? }
      get(serve { [200, {}, []] })
      assert_equal 1, body.closes, "#{method} #{status}"
    end
  end

  def test_close_once_when_the_answer_is_refused
    body = Body.new("text")
    assert_equal 500, get(answer(body, headers: { "x-bad" => "a\r\nb" }, lint: false)).status
    assert_closed(body)
  end

  def test_close_after_the_last_part
    order = Queue.new
    parts = %w[0 1].each.lazy.map { |part| part.tap { order << part } }
    get(answer(Body.new(log: order) { |out| parts.each(&out) }))
    assert_equal ["0", "1", :close], (Array.new(3) { take(order) })
  end

  def test_close_that_raises
    body = Body.new("text")
    def body.close
      super
      raise "in close"
    end
    client = answer(body)
    client.write(bytes("GET", "/"))
    eventually("it is logged") { log.include?("in close") }
    assert_closed(body)
    assert_equal 200, get(serve { [200, {}, []] }).status
  end

  def test_bodies_without_close
    body = Object.new
    def body.each
      yield "plain"
    end
    assert_equal "plain", get(answer(body)).body
  end

  def test_middleware_closing_twice_is_not_the_server
    inner = Body.new("text")
    proxied = Rack::BodyProxy.new(inner) { @proxied = (@proxied || 0) + 1 }
    get(answer(proxied))
    eventually("it is closed") { @proxied }
    assert_equal [1, 1], [@proxied, inner.closes]
  end

  # HEAD and bodyless statuses

  def test_head_enumerates_nothing
    client = answer(Body.new { raise "each was called" })
    response = client.request(bytes("HEAD", "/"), head: true)
    assert_equal 200, response.status
    assert_equal 200, client.request(bytes("HEAD", "/"), head: true).status
    refute_includes log, "each was called"
  end

  def test_head_keeps_the_length
    response = answer(["12345"], lint: false).request(bytes("HEAD", "/"), head: true)
    assert_equal "5", response.header("content-length")
    response = answer([], headers: { "content-length" => "12345" }, lint: false)
               .request(bytes("HEAD", "/"), head: true)
    assert_equal "12345", response.header("content-length")
  end

  [204, 304].each do |status|
    define_method("test_#{status}_sends_no_body") do
      client = answer(["unwanted"], status: status, lint: false)
      client.write(bytes("GET", "/") * 2)
      2.times { assert_equal [status, ""], client.response.to_a.values_at(1, 4) }
      client.write(bytes("GET", "/", "Connection" => "close"))
      client.response
      assert_predicate client, :closed?
    end
  end

  # Files

  def test_a_file
    content = Random.bytes(3_000_017)
    with_file(content) do |path|
      body = FileBody.new(path)
      response = get(answer(body))
      assert_equal [content.bytesize.to_s, :length], [response.header("content-length"), response.framing]
      assert response.body == content, "the file differs"
      assert_closed(body)
    end
  end

  def test_a_file_to_head
    with_file("12345") do |path|
      body = FileBody.new(path)
      client = answer(body)
      assert_equal 200, client.request(bytes("HEAD", "/"), head: true).status
      assert_equal 200, client.request(bytes("HEAD", "/"), head: true).status
      assert_closed(body, 2)
    end
  end

  def test_an_empty_file
    with_file("") do |path|
      response = get(answer(FileBody.new(path)))
      assert_equal ["", "0"], [response.body, response.header("content-length")]
    end
  end

  def test_a_small_file_with_its_length_given
    with_file("12345") do |path|
      assert_equal "12345", get(answer(FileBody.new(path), headers: { "content-length" => "5" })).body
    end
  end

  def test_a_file_that_can_not_be_opened_falls_back_on_each
    assert_equal "each was called", get(answer(FileBody.new("/nonexistent/file"), lint: false)).body
    assert_equal "each was called", get(answer(FileBody.new("/"), lint: false)).body
    assert_equal "each was called", get(answer(FileBody.new(nil))).body
  end

  # Rails returns the path that send_file was given.
  def test_to_path_that_is_a_pathname
    with_file("12345") do |path|
      assert_equal "12345", get(answer(FileBody.new(Pathname(path)), lint: false)).body
    end
  end

  def test_a_file_for_a_slow_reader_beside_others
    content = Random.bytes(9_000_000)
    with_file(content) do |path|
      running = start { |env| [200, {}, env["PATH_INFO"] == "/file" ? FileBody.new(path) : ["here"]] }
      slow = connect(running, receive_buffer: 4096)
      slow.write(bytes("GET", "/file"))
      quick = connect
      20.times { assert_equal "here", get(quick).body }
      assert slow.response.body == content, "the file differs"
    end
  end

  def test_rack_files
    with_file("the file") do |path|
      files = Rack::Files.new(File.dirname(path))
      client = serve(files)
      assert_equal "the file", get(client, "/#{File.basename(path)}").body
      partial = get(client, "/#{File.basename(path)}", "Range" => "bytes=4-7")
      assert_equal [206, "file", "bytes 4-7/8"], [partial.status, partial.body, partial.header("content-range")]
      assert_equal 404, get(client, "/none").status
    end
  end
end
