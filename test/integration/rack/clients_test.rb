# frozen_string_literal: true

# Clients that people use, against clients.ru: curl, Net::HTTP, node's fetch and agent, h2load, wrk.
# Every answer has to be right, and no request may fail.
# SPDX-License-Identifier: MIT

require "test_helper"
require "digest"
require "json"
require "net/http"
require "open3"
require "tempfile"
require "support/server_process"

class ClientsTest < Minitest::Test
  APP = File.expand_path("clients.ru", __dir__)
  HELLO = "Hello, World!\n"
  PARTS = (0...20).map { |n| "part #{n}\n" }.join

  class << self
    def server
      @server ||= ServerProcess.new(APP, env: { "RONDO_TEST_LINT" => "1" })
    end

    # For clients that only count: without Lint.
    def plain_server
      @plain_server ||= ServerProcess.new(APP)
    end

    def stop
      [@server, @plain_server].compact.each(&:stop)
    end
  end
  Minitest.after_run { ClientsTest.stop }

  def url(path = "")
    "#{self.class.server.url}#{path}"
  end

  def teardown
    return if passed? || skipped?
    warn self.class.server.log[-3000..] || self.class.server.log
  end

  # @return [String] what the program wrote to stdout; its stderr is in @said
  def program(*command, input: nil)
    skip "#{command[0]} is not installed" unless system("command -v #{command[0]} >/dev/null 2>&1")
    output, @said, status = Open3.capture3("timeout", "60", *command, stdin_data: input, binmode: true)
    assert_predicate status, :success?, "#{command.join(" ")}:\n#{output[-2000..] || output}\n#{@said}"
    output
  end

  def curl(*arguments, **options)
    program("curl", "--silent", "--show-error", "--max-time", "30", *arguments, **options)
  end

  def body_file(bytes)
    Tempfile.create("rondo-client") do |file|
      file.binmode
      file.write(bytes)
      file.flush
      yield file.path, "#{bytes.bytesize} #{Digest::SHA256.hexdigest(bytes)}"
    end
  end

  # curl

  def test_curl
    assert_equal HELLO, curl(url("/hello"))
    assert_equal PARTS, curl(url("/parts"))
    assert_equal PARTS, curl(url("/stream"))
    assert_equal File.binread(APP), curl(url("/file"))
    assert_equal "", curl(url("/empty"))
    assert_equal HELLO, curl("--location", url("/redirect"))
    assert_equal "404", curl("--output", File::NULL, "--write-out", "%{http_code}", url("/none"))
  end

  def test_curl_keeps_its_connection
    curl("--verbose", *(["--output", File::NULL, url("/hello")] * 5), url("/parts"))
    assert_equal 5, @said.scan(/re-?us(?:ing|ed) existing (?:http: )?connection/i).size, @said
  end

  def test_curl_next
    output = curl(url("/hello"), "--next", "--silent", "--head", url("/hello"), "--next", "--silent", "-X", "POST",
                  "--data", "abc", url("/digest"), "--next", "--silent", url("/env?x"))
    assert output.start_with?("#{HELLO}HTTP/1.1 200 OK\r\n")
    assert output.end_with?("3 #{Digest::SHA256.hexdigest("abc")}[\"GET\", \"/env\", \"x\", nil]"), output
  end

  def test_curl_in_parallel
    output = curl("--parallel", "--parallel-max", "20", url("/env?[1-100]"))
    assert_equal 100, output.scan(%r{\["GET", "/env", "\d+", nil\]}).uniq.size
  end

  def test_curl_http_1_0
    assert_equal HELLO, curl("--http1.0", url("/hello"))
    assert_equal PARTS, curl("--http1.0", url("/parts"))
    assert_equal PARTS, curl("--http1.0", url("/stream"))
    assert_equal HELLO * 2, curl("--http1.0", "--header", "Connection: keep-alive", url("/hello"), url("/hello"))
    assert_match(%r{\AHTTP/1\.\d 200 OK\r$}, curl("--http1.0", "--head", url("/hello")))
  end

  def test_curl_head
    ["/hello", "/parts", "/stream", "/file", "/large"].each do |path|
      assert_match(%r{\AHTTP/1\.1 200 OK\r\n.*\r\n\r\n\z}m, curl("--head", url(path)), path)
    end
  end

  def test_curl_upload_with_expect
    body_file(Random.bytes(3_000_000)) do |path, sum|
      assert_equal sum, curl("--verbose", "--upload-file", path, "--header", "Expect: 100-continue",
                             "--expect100-timeout", "30", url("/digest"))
      assert_match(%r{^< HTTP/1\.1 100 }, @said)
    end
  end

  def test_curl_chunked
    body_file(Random.bytes(700_001)) do |path, sum|
      assert_equal sum, curl("--header", "Transfer-Encoding: chunked", "--data-binary", "@#{path}", url("/digest"))
      assert_equal sum, curl("--header", "Transfer-Encoding: chunked", "--header", "Expect: 100-continue",
                             "--upload-file", path, url("/digest"))
    end
    assert_equal "2 #{Digest::SHA256.hexdigest("ab")}",
                 curl("--header", "Transfer-Encoding: chunked", "--upload-file", "-", url("/digest"), input: "ab")
  end

  def test_curl_large_download
    assert_equal 5_000_000, curl(url("/large")).bytesize
    assert_equal 5_000_000, curl("--limit-rate", "20M", url("/large")).bytesize
  end

  # Net::HTTP

  def test_net_http_persistent
    Net::HTTP.start("127.0.0.1", self.class.server.port) do |http|
      socket = http.instance_variable_get(:@socket)
      20.times { assert_equal HELLO, http.get("/hello").body }
      assert_equal PARTS, http.get("/parts").body
      assert_equal PARTS, http.get("/stream").body
      assert_kind_of Net::HTTPOK, http.head("/hello")
      assert_nil http.get("/empty").body
      assert_equal "3 #{Digest::SHA256.hexdigest("abc")}", http.post("/digest", "abc").body
      assert_equal %w[a=1 b=2], http.get("/cookies").get_fields("set-cookie")
      assert_equal '["BREW", "/env", "", "1"]', http.send_request("BREW", "/env", nil, { "X-One" => "1" }).body
      assert_same socket, http.instance_variable_get(:@socket)
    end
  end

  def test_net_http_streams_its_body
    bytes = Random.bytes(1_000_003)
    Net::HTTP.start("127.0.0.1", self.class.server.port) do |http|
      %w[chunked length].each do |framing|
        request = Net::HTTP::Post.new("/digest")
        framing == "chunked" ? request["Transfer-Encoding"] = "chunked" : request.content_length = bytes.bytesize
        request.body_stream = StringIO.new(bytes)
        assert_equal "1000003 #{Digest::SHA256.hexdigest(bytes)}", http.request(request).body, framing
      end
    end
  end

  def test_net_http_waits_for_100
    Net::HTTP.start("127.0.0.1", self.class.server.port) do |http|
      http.continue_timeout = 20
      request = Net::HTTP::Post.new("/digest", { "Expect" => "100-continue", "Content-Type" => "text/plain" })
      request.body = "abc"
      assert_equal "3 #{Digest::SHA256.hexdigest("abc")}", http.request(request).body
    end
  end

  def test_net_http_on_many_threads
    port = self.class.server.port # one server for all of them
    threads = Array.new(8) do |n|
      Thread.new do
        Net::HTTP.start("127.0.0.1", port) do |http|
          (0...40).count { |m| http.get("/env?#{n}-#{m}").body == %(["GET", "/env", "#{n}-#{m}", nil]) }
        end
      end
    end
    assert_equal([40] * 8, threads.map(&:value))
  end

  # node

  def test_node
    answers = JSON.parse(program("node", File.expand_path("clients.js", __dir__), url))
    assert_equal [200, HELLO], answers["hello"]
    assert_equal [21, 21, 5_000_000, 204, HELLO], answers.values_at("parts", "stream", "large", "empty", "redirected")
    assert_equal [200, "a=1, b=2"], answers.values_at("head", "cookies")
    assert_equal [true, true, 200], answers.values_at("posted", "chunked", "many")
    assert_equal [14, PARTS.size, PARTS.size, 0, 100],
                 (%w[agent/hello agent/parts agent/stream agent/empty agents].map { |key| answers[key] })
    assert_equal 4, answers["reused"]
    assert_operator answers["sockets"], :<=, 5
  end

  # Load generators

  def plain(path)
    "#{self.class.plain_server.url}#{path}"
  end

  def test_h2load
    %w[/hello /parts /stream].each do |path|
      output = program("h2load", "--h1", "-n", "2000", "-c", "20", "-m", "8", plain(path))
      assert_match(/2000 succeeded, 0 failed, 0 errored, 0 timeout/, output, path)
      assert_match(/status codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx/, output, path)
    end
  end

  def test_h2load_posts
    body_file("x" * 1000) do |path, _sum|
      output = program("h2load", "--h1", "-n", "1000", "-c", "10", "-d", path, plain("/digest"))
      assert_match(/1000 succeeded, 0 failed/, output)
    end
  end

  def test_wrk
    %w[/hello /parts].each do |path|
      output = program("wrk", "-t", "1", "-c", "20", "-d", "2s", "--timeout", "60s", plain(path))
      assert_match(/[1-9]\d* requests in/, output)
      refute_match(/Socket errors|Non-2xx/, output)
    end
  end
end
