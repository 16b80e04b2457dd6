# frozen_string_literal: true

# Whole requests through a server of this process while everything that can be collected or moved
# is: run by `rake test:gc` with RONDO_TEST_GC=full, and as ordinary tests without it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "socket"
require "tmpdir"

class CollectedServerTest < Minitest::Test
  # Keeps what the server says.
  class Log
    attr_reader :lines

    def initialize
      @lines = []
    end

    %i[debug info warn error].each { |level| define_method(level) { |line| @lines << line } }
  end

  def test_plain_requests
    app = ->(env) { [200, { "x-path" => env["PATH_INFO"] }, ["#{env["QUERY_STRING"]}/#{env["HTTP_X_ONE"]}"]] }
    answers = exchange(app, (1..5).map { |n| "GET /p#{n}?q#{n} HTTP/1.1\r\nhost: h\r\nx-one: v#{n}\r\n\r\n" }.join)
    (1..5).each do |n|
      assert_includes answers, "x-path: /p#{n}\r\n"
      assert_includes answers, "q#{n}/v#{n}"
    end
  end

  # Its template is made when it comes for the third time, out of values that only the env holds.
  def test_header_sections_that_come_again
    app = ->(env) { [200, {}, ["<#{env["HTTP_HOST"]},#{env["HTTP_X_ONE"]},#{env["HTTP_X_TWO"]}>"]] }
    (1..2).each do |n|
      answers = exchange(app, "GET / HTTP/1.1\r\nhost: h#{n}\r\nx-one: one #{n}\r\nx-two: #{"2" * (20 + n)}\r\n\r\n" * 4)
      assert_equal ["<h#{n},one #{n},#{"2" * (20 + n)}>"] * 4, answers.scan(/<[^>]*>/)
    end
  end

  def test_the_environment_outlives_the_request
    kept = []
    app = lambda do |env|
      kept << env
      [204, {}, []]
    end
    exchange(app, "GET /a HTTP/1.1\r\nhost: one\r\n\r\nGET /b HTTP/1.1\r\nhost: two\r\n\r\n")
    assert_equal([["/a", "one"], ["/b", "two"]], kept.map { |env| env.values_at("PATH_INFO", "HTTP_HOST") })
    kept.each(&:inspect)
  end

  def test_bodies_of_requests
    app = ->(env) { [200, {}, [env["rack.input"].gets.to_s, env["rack.input"].read.to_s]] }
    answers = exchange(app, "POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\none\ntwo\nend" \
                            "POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n" \
                            "2\r\na\n\r\n3\r\nbcd\r\n0\r\n\r\n")
    assert_includes answers, "one\ntwo\nend"
    assert_includes answers, "a\nbcd"
  end

  def test_bodies_that_are_enumerated_and_streamed
    parts = Enumerator.new { |yielder| 4.times { |n| yielder << "part#{n};" } }
    stream = lambda do |out|
      4.times { |n| out.write("line#{n};") }
      out.close
    end
    app = ->(env) { [200, {}, env["PATH_INFO"] == "/each" ? parts : stream] }
    answers = exchange(app, "GET /each HTTP/1.1\r\nhost: h\r\n\r\nGET /call HTTP/1.1\r\nhost: h\r\n\r\n")
    4.times do |n|
      assert_includes answers, "part#{n};"
      assert_includes answers, "line#{n};"
    end
  end

  def test_an_exception_becomes_an_answer
    log = Log.new
    answers = exchange(->(_) { raise "no luck" }, "GET / HTTP/1.1\r\nhost: h\r\n\r\n", log: log)
    assert_match(%r{\AHTTP/1\.1 500 }, answers)
    assert_includes log.lines.join("\n"), "no luck"
  end

  def test_a_bad_request_becomes_an_answer
    assert_match(%r{\AHTTP/1\.1 400 }, exchange(->(_) { flunk }, "GET / HTTP/1.1\r\nno colon\r\n\r\n"))
  end

  def test_finished_callbacks_and_close
    done = []
    body = Object.new
    body.define_singleton_method(:each) { |&block| block.call("x") }
    body.define_singleton_method(:close) { done << :close }
    app = lambda do |env|
      env["rack.response_finished"] << ->(_, status, _, error) { done << [status, error] }
      [200, {}, body]
    end
    exchange(app, "GET / HTTP/1.1\r\nhost: h\r\n\r\n")
    assert_equal [:close, [200, nil]], done
  end

  # More than have room where most find theirs. Made before: in a test each allocation costs a collection.
  MANY = (1..41).to_h { |n| ["x-#{n}", "v#{n}"] }.freeze
  MANY_LINES = MANY.map { |name, value| "\r\n#{name}: #{value}" }.join.freeze
  LONG = %w[l m].zip([5000, 20_000]).map { |letter, count| (letter * count).freeze }.freeze
  FIELDS = %w[objects many long].map { |name| "GET /#{name} HTTP/1.1\r\nhost: h\r\n\r\n" }.join.freeze

  # Short Strings have their bytes inside and move with them.
  def test_fields
    app = lambda do |env|
      case env["PATH_INFO"]
      when "/objects" then [200, { "x-a1".dup => "v1".dup, "x-b": 5, "x-c" => [:d, "e2".dup] }, [].each]
      when "/many" then [200, MANY, []]
      else [200, { "x-l1".dup => LONG[0].dup, "x-m" => LONG[1].dup, "x-n" => "n1".dup }, []]
      end
    end
    answers = exchange(app, FIELDS)
    assert_includes answers, "\r\nx-a1: v1\r\nx-b: 5\r\nx-c: d\r\nx-c: e2\r\n"
    assert_includes answers, MANY_LINES
    assert_includes answers, "\r\nx-l1: #{LONG[0]}\r\nx-m: #{LONG[1]}\r\nx-n: n1\r\n"
  end

  FOLDER = Dir.mktmpdir.freeze
  Minitest.after_run { FileUtils.rm_r(FOLDER) }
  FILE = File.join(FOLDER, "a file of some length.txt").freeze
  File.write(FILE, "0123456789")
  FILES = %w[x-sendfile x-accel-redirect body].map do |name|
    "GET /#{name} HTTP/1.1\r\nhost: h\r\nrange: bytes=0-1,4-5\r\n\r\n"
  end.join.freeze
  FILE_TAG = "\"#{"e" * 50}\"".freeze

  # Strings that no code keeps: the names and values of the fields, the path.
  def test_files
    file = Struct.new(:to_path)
    app = lambda do |env|
      headers = { "x-other-than-#{env["PATH_INFO"]}".tr("/", "-") => "v" * 50, "etag" => FILE_TAG.dup }
      headers["x-sendfile"] = FILE.dup if env["PATH_INFO"] == "/x-sendfile"
      headers["x-accel-redirect"] = FILE.gsub(" ", "%20") if env["PATH_INFO"] == "/x-accel-redirect"
      [200, headers, file.new(FILE.dup)]
    end
    answers = exchange(app, FILES, x_sendfile_roots: [FOLDER])
    assert_equal 3, answers.scan("HTTP/1.1 206 ").size
    assert_equal 3, answers.scan(FILE_TAG).size
    assert_equal 3, answers.scan("bytes 4-5/10\r\n\r\n45\r\n").size
  end

  private

  # Sends bytes to a server of its own, half-closes, and answers everything that comes back.
  def exchange(app, bytes, log: Log.new, **options)
    server = Rondo::Server.new(app, environment: "test", log: log, **options)
    url = server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    TCPSocket.open("127.0.0.1", url[/\d+\z/].to_i) do |socket|
      socket.write(bytes)
      socket.close_write
      socket.read
    end
  ensure
    server&.stop
    thread&.join(60)
  end
end
