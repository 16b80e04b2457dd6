# frozen_string_literal: true

# rack.input and rack.errors: reading bodies from memory and from their temporary file, bodies that
# have not come yet and bodies that never come.
# SPDX-License-Identifier: MIT

require "logger"
require_relative "rack_case"

class RackInputTest < RackCase
  MEMORY = 65_536

  # The result of the block for the rack.input of a request with that body.
  def reading(body, headers = {}, **options)
    result = failure = nil
    client = serve(lint: false, **options) do |env|
      result = yield env["rack.input"]
      [200, {}, []]
    rescue Exception => e # rubocop:disable Lint/RescueException -- handed to the test
      failure = e
      [500, {}, []]
    end
    client.request(bytes("POST", "/", headers, body))
    raise failure if failure
    result
  end

  # @return [Array<String>] unlinked files that this process has open, by names that have their inodes
  def unlinked_files
    unlinked_paths.filter_map { |path| readlink_or_nil(path) }
  end

  def unlinked_paths
    Dir.children("/proc/self/fd").map { |fd| "/proc/self/fd/#{fd}" }
       .select { |path| readlink_or_nil(path)&.end_with?(" (deleted)") }
  end

  def readlink_or_nil(path)
    File.readlink(path)
  rescue Errno::ENOENT
    nil
  end

  # Files of earlier tests may close meanwhile. They are held open, so that no new file gets their inodes.
  # @yieldparam known [Array<String>] the names of those that are open already
  def with_files_held
    held = unlinked_paths.filter_map do |path|
      File.open(path)
    rescue Errno::ENOENT
      nil
    end
    yield unlinked_files
  ensure
    held&.each(&:close)
  end

  def test_read_all_then_nothing
    assert_equal ["hello", "", nil, nil, ""],
                 (reading("hello") { |input| [input.read, input.read, input.read(1), input.gets, input.read(0)] })
  end

  def test_read_in_pieces
    assert_equal ["hel", "lo", nil, nil], (reading("hello") { |input| Array.new(4) { input.read(3) } })
  end

  def test_read_0
    assert_equal ["", "hello"], (reading("hello") { |input| [input.read(0), input.read] })
  end

  def test_read_nil_with_and_without_a_buffer
    reading("hello") do |input|
      buffer = +"old content"
      assert_same buffer, input.read(nil, buffer)
      assert_equal "hello", buffer
      assert_equal "", input.read(nil, buffer)
      assert_equal "", buffer
    end
  end

  def test_read_into_a_buffer
    reading("hello") do |input|
      buffer = String.new("old", encoding: "UTF-8")
      assert_same buffer, input.read(4, buffer)
      assert_equal ["hell", Encoding::BINARY], [buffer, buffer.encoding]
      assert_equal "o", input.read(4, buffer)
      assert_equal "o", buffer
      assert_nil input.read(4, buffer)
      assert_equal "", buffer
    end
  end

  def test_a_frozen_buffer_is_refused
    assert_raises(FrozenError) { reading("hello") { |input| input.read(2, "frozen") } }
  end

  def test_a_negative_length_is_refused
    assert_raises(ArgumentError) { reading("hello") { |input| input.read(-1) } }
  end

  def test_everything_is_binary
    encodings = reading("gr\xC3\xBC\n\xFFx") do |input|
      strings = [input.gets, input.read(1), input.read, input.read(0)]
      input.rewind
      strings += input.each.to_a
      strings.map(&:encoding).uniq
    end
    assert_equal [Encoding::BINARY], encodings
  end

  def test_gets
    assert_equal ["one\n", "\n", "three", nil, nil], (reading("one\n\nthree") { |input| Array.new(5) { input.gets } })
  end

  def test_gets_of_a_long_line
    line = "#{"x" * 300_000}\n"
    assert_equal [line, "rest", nil], (reading("#{line}rest") { |input| Array.new(3) { input.gets } })
  end

  def test_each
    assert_equal %W[one\n two\n three], (reading("one\ntwo\nthree") { |input| [].tap { |all| input.each { |l| all << l } } })
    assert_empty(reading("") { |input| input.each.to_a })
  end

  def test_rewind_and_size
    assert_equal [5, "hello", "hello", 5],
                 (reading("hello") { |input| [input.size, input.read, input.tap(&:rewind).read, input.size] })
  end

  def test_after_close_reading_raises
    reading("hello") do |input|
      input.close
      input.close
      assert_raises(IOError) { input.read }
      assert_raises(IOError) { input.gets }
      assert_raises(IOError) { input.each { flunk } }
    end
  end

  def test_no_body
    seen = Queue.new
    client = serve do |env|
      input = env["rack.input"]
      seen << (input ? [input.read, input.read(1), input.gets, input.each { flunk }.nil?] : nil)
      [200, {}, []]
    end
    2.times do
      get(client)
      assert_includes [nil, ["", nil, nil, false], ["", nil, nil, true]], take(seen)
    end
  end

  def test_closing_the_input_of_one_request_leaves_the_others_alone
    client = serve do |env|
      text = env["rack.input"]&.read
      env["rack.input"]&.close
      [200, {}, [text.to_s]]
    end
    assert_equal "", get(client).body
    assert_equal "", get(client).body
    assert_equal "b", post(client, "/", "b").body
    assert_equal "", get(connect).body
  end

  def test_behind_lint
    client = serve do |env|
      input = env["rack.input"]
      parts = [input.read(2), input.gets]
      input.each { |line| parts << line }
      [200, {}, parts + [input.read, input.read(1).inspect]]
    end
    assert_equal "onetwo\nthree\nnil", post(client, "/", "onetwo\nthree\n").body
  end

  def test_a_body_up_to_the_limit_makes_no_file
    with_files_held do |known|
      assert_equal [[], MEMORY], (reading("x" * MEMORY) { |input| [unlinked_files - known, input.read.size] })
    end
  end

  def test_a_larger_body_is_an_unlinked_file
    with_files_held { |known| check_larger_body(Random.bytes(MEMORY * 5 + 1), known) }
  end

  def check_larger_body(body, known)
    files = reading(body) do |input|
      assert_equal body, input.read
      assert_equal body.size, input.size
      input.rewind
      buffer = +""
      copy = +"".b
      copy << buffer while input.read(10_007, buffer)
      assert_equal body, copy
      unlinked_files - known
    end
    assert_equal 1, files.size
    eventually("the file is closed") { !unlinked_files.intersect?(files) }
  end

  def test_a_tiny_chunked_body_makes_no_file
    with_files_held do |known|
      files = reading("2\r\nab\r\n0\r\n\r\n", { "Transfer-Encoding" => "chunked" }) do |input|
        assert_equal "ab", input.read
        unlinked_files - known
      end
      assert_empty files
    end
  end

  def test_a_large_chunked_body
    parts = Array.new(40) { |n| Random.bytes(1 + (n * 997)) }
    body = reading(chunked(*parts), { "Transfer-Encoding" => "chunked" }, &:read)
    assert_equal parts.join, body
  end

  def test_a_body_byte_by_byte
    client = serve(lint: false) { |env| [200, {}, [env["rack.input"].read]] }
    bytes("POST", "/", {}, "abc\n").each_char { |byte| client.write(byte) }
    assert_equal "abc\n", client.response.body
  end

  def test_the_body_can_be_kept_as_a_string_but_the_input_ends_with_the_request
    kept = []
    client = serve(lint: false) do |env|
      kept << env["rack.input"] << env["rack.input"].read
      [200, {}, []]
    end
    post(client, "/", "first")
    post(client, "/", "second")
    assert_equal %w[first second], kept.values_at(1, 3)
    [kept[0], kept[2]].each do |input|
      text = begin
        input.rewind
        input.read
      rescue IOError
        nil
      end
      assert_includes [nil, "", "first", "second"], text
    end
  end

  def test_an_unread_body_does_not_harm_the_next_request
    client = serve { |env| [200, {}, [env["PATH_INFO"]]] }
    client.write(bytes("POST", "/1", {}, "x" * 1000) + bytes("POST", "/2", {}, "y" * 200_000) + bytes("GET", "/3"))
    assert_equal(%w[/1 /2 /3], Array.new(3) { client.response.body })
  end

  # Expect: 100-continue

  def expecting(path, length, **fields)
    bytes("POST", path, { "Expect" => "100-continue", "Content-Length" => length }, nil, **fields)
  end

  def test_100_comes_when_the_application_reads
    client = serve { |env| [200, {}, [env["rack.input"].read]] }
    assert_equal 100, client.request(expecting("/", 5), interim: true).status
    assert_equal "hello", client.request("hello").body
    assert_equal 200, get(client).status
  end

  def test_100_comes_for_each_way_to_read
    ways = { "gets" => :gets.to_proc, "each" => ->(input) { input.each.to_a.join },
             "read" => ->(input) { input.read(5) }, "size" => ->(input) { input.size.to_s } }
    client = serve(lint: false) { |env| [200, {}, [ways[env["QUERY_STRING"]].call(env["rack.input"])]] }
    ways.each_key do |way|
      assert_equal 100, client.request(expecting("/?#{way}", 5), interim: true).status, way
      assert_equal way == "size" ? "5" : "hello", client.request("hello").body, way
    end
  end

  def test_others_are_served_while_one_is_waited_for
    entered = Queue.new
    client = serve do |env|
      entered << 1
      [200, {}, [env["rack.input"].read]]
    end
    assert_equal 100, client.request(expecting("/", 5), interim: true).status
    take(entered)
    other = connect
    3.times { assert_equal "", get(other).body }
    assert_equal "hello", client.request("hello").body
  end

  def test_an_early_answer_closes_and_says_no_100
    client = serve { |_env| [403, {}, ["no"]] }
    response = client.request(expecting("/", 5), interim: true)
    assert_equal [403, "no"], [response.status, response.body]
    assert_predicate response, :close?
    assert_predicate client, :closed?
  end

  # The request is over then, whichever request uses its slot next.
  def test_an_answer_while_another_thread_waits_for_the_body
    readers = Queue.new
    client = serve(lint: false) do |env|
      readers << (reader = Thread.new { reading_raises(env["rack.input"]) })
      eventually("it waits") { reader.stop? }
      body = Body.new("no")
      body.define_singleton_method(:close) { reader.join } # the answer has ended, the call has not
      [200, {}, body]
    end
    response = client.request(expecting("/", 5))
    assert_equal [200, "no"], [response.status, response.body]
    assert_equal [IOError, "closed stream"], value_of(take(readers))
  end

  def reading_raises(input, *arguments)
    input.read(*arguments)
  rescue IOError => e
    [e.class, e.message]
  end

  # The argument of read is checked before the body is.
  def test_an_answer_while_another_thread_converts_a_length
    entered = Queue.new
    gate = Queue.new
    length = Object.new
    length.define_singleton_method(:to_int) do
      entered << true
      gate.pop
    end
    readers = Queue.new
    client = serve(lint: false) do |env|
      readers << Thread.new { reading_raises(env["rack.input"], length) }
      take(entered)
      [200, {}, []]
    end
    assert_equal 200, client.request(bytes("POST", "/", {}, "hello")).status
    eventually("the request is over") { @running.last.server.stats[:busy].zero? }
    gate << 5
    assert_equal [IOError, "closed stream"], value_of(take(readers))
  end

  def test_no_100_for_a_body_that_has_come
    client = serve { |env| [200, {}, [env["rack.input"].read]] }
    response = client.request("#{expecting("/", 5)}hello", interim: true)
    assert_equal [200, "hello"], [response.status, response.body]
  end

  def test_no_100_for_1_0
    client = serve { |env| [200, {}, [env["rack.input"].read]] }
    client.write(bytes("POST", "/", { "Expect" => "100-continue", "Content-Length" => 5 }, version: "1.0"))
    client.write("hello")
    assert_equal 200, client.response(interim: true).status
  end

  def test_an_unknown_expectation
    client = serve { |_env| flunk }
    assert_equal 417, client.request(bytes("POST", "/", { "Expect" => "tea", "Content-Length" => 1 })).status
  end

  def test_a_body_cut_short_raises_and_never_just_ends
    failures = Queue.new
    client = serve(lint: false) do |env|
      env["rack.input"].read
      [200, {}, []]
    rescue StandardError => e
      failures << e
      raise
    end
    assert_equal 100, client.request(expecting("/", 5), interim: true).status
    client.write("hel")
    client.close
    failure = take(failures)
    assert_kind_of IOError, failure
    assert_kind_of Rondo::BodyError, failure
    assert_equal 200, connect.request(bytes("GET", "/")).status
  end

  def test_a_body_cut_short_by_half_close_raises
    failures = Queue.new
    client = serve(lint: false) do |env|
      env["rack.input"].gets
      [200, {}, []]
    rescue EOFError => e
      failures << e
      [400, {}, []]
    end
    assert_equal 100, client.request(expecting("/", 5), interim: true).status
    client.write("hel").half_close
    assert_kind_of Rondo::BodyError, take(failures)
  end

  def test_a_bad_chunk_raises
    failures = Queue.new
    client = serve(lint: false) do |env|
      env["rack.input"].read
      [200, {}, []]
    rescue EOFError => e
      failures << e
      raise
    end
    client.write(bytes("POST", "/", { "Expect" => "100-continue", "Transfer-Encoding" => "chunked" }))
    assert_equal 100, client.response(interim: true).status
    client.write("zz\r\n")
    assert_kind_of Rondo::BodyError, take(failures)
    assert_equal 400, client.response.status
    assert_predicate client, :closed?
  end

  def test_a_cut_body_without_expect_never_reaches_the_application
    calls = Queue.new
    client = serve do |_env|
      calls << 1
      [200, {}, []]
    end
    client.write(bytes("POST", "/", { "Content-Length" => 10 })).write("abc").close
    assert_equal 200, get(connect).status
    assert_equal 1, calls.size
  end

  def test_a_body_over_the_limit
    client = serve(max_body_bytes: 100) { |env| [200, {}, [env["rack.input"].read]] }
    assert_equal 413, client.request(bytes("POST", "/", { "Content-Length" => 101 })).status
    client = connect
    assert_equal 200, client.request(bytes("POST", "/", {}, "x" * 100)).status
  end

  def test_a_body_over_the_limit_while_it_is_read
    client = serve(max_body_bytes: 100) { |env| [200, {}, [env["rack.input"].read]] }
    client.write(bytes("POST", "/", { "Expect" => "100-continue", "Transfer-Encoding" => "chunked" }))
    assert_equal 100, client.response(interim: true).status
    client.write(chunked("x" * 101))
    assert_equal 413, client.response.status
    assert_predicate client, :closed?
  end

  # rack.errors

  def test_errors
    before = $stderr
    $stderr = written = StringIO.new
    client = serve do |env|
      env["rack.errors"].puts("a line")
      env["rack.errors"].write("some")
      env["rack.errors"].flush
      [200, {}, []]
    end
    assert_equal 200, get(client).status
    assert_equal "a line\nsome", written.string
  ensure
    $stderr = before
  end

  # As Rack's and Sinatra's middleware does it.
  def test_errors_serve_a_logger
    before = $stderr
    $stderr = written = StringIO.new
    client = serve(lint: false) do |env|
      logger = Logger.new(env["rack.errors"])
      logger.warn("by a logger")
      logger.close
      [200, {}, []]
    end
    2.times { assert_equal 200, get(client).status, log }
    assert_equal 2, written.string.scan("by a logger").size
  ensure
    $stderr = before
  end
end
