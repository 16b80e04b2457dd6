# frozen_string_literal: true

# Bodies of requests count in total_body_bytes until their answers are over (engine/body.js), whatever ends them.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/raw_client"
require "support/waiting"

class NodeBodiesTest < Minitest::Test
  include Waiting

  APP = File.expand_path("waiting.ru", __dir__)
  TOTAL = 1_048_576
  LARGE = TOTAL * 3 / 4

  def setup
    @server = NodeProcess.new(APP, args: ["--set", "total_body_bytes=1m", "--set", "max_body_bytes=900k"])
    @clients = []
  end

  def teardown
    @clients.each(&:close)
    @server.stop
  end

  def open
    RawClient.new(@server.url).tap { |client| @clients << client }
  end

  def get(path)
    RawClient.open(@server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  def large(path, method: "POST", fields: "", size: LARGE)
    "#{method} #{path} HTTP/1.1\r\nhost: a\r\n#{fields}content-length: #{size}\r\n\r\n#{"x" * size}"
  end

  def status_of(bytes, **options)
    RawClient.open(@server.url) { |client| client.request(bytes, **options).status }
  rescue Errno::EPIPE
    NodeProcess::UWS ? 507 : raise # its refusal ends the connection while the body is on its way
  end

  # Nothing counts any more: the largest body is taken.
  def assert_free
    wait_until { status_of(large("/size", size: 900_000)) == 200 }
  end

  # No more than one large body fits.
  def assert_counted
    first = open.write(large("/wait?one"))
    wait_until { get("/waiting") == "1" }
    assert_equal 507, status_of(large("/size"))
    get("/go")
    assert_equal 200, first.response.status
    assert_free
  end

  def test_a_body_counts_until_its_answer
    assert_counted
  end

  # Requests of all kinds, from clients that leave at any time: nothing counts too long, and nothing twice.
  def test_any_clients_in_any_order
    random = Random.new(1)
    upgrade = "connection: upgrade\r\nupgrade: x\r\n"
    kinds = [["/size", ""], ["/raise", ""], ["/wait?a", ""], ["/stream?a", ""], ["/noted?a", ""], ["/size", upgrade], ["/wait?a", upgrade],
             ["/stream?a", upgrade], ["/size", "expect: 100-continue\r\n"], ["/visit?a", "accept: text/event-stream\r\n"]]
    200.times do
      bytes = Array.new(random.rand(1..3)) { large(kinds.sample(random: random).first, method: %w[GET POST].sample(random: random), fields: kinds.sample(random: random).last, size: random.rand(1..30_000)) }.join
      client = RawClient.new(@server.url)
      client.write(random.rand(2).zero? ? bytes : bytes.byteslice(0, random.rand(1..bytes.bytesize)))
      client.read_some(timeout: 0.001) if random.rand(2).zero?
    rescue RawClient::Timeout, SystemCallError
      next
    ensure
      random.rand(2).zero? ? client.reset : client.close
      get("/go") if random.rand(4).zero?
    end
    get("/go")
    wait_until { get("/go") == "0" }
    assert_free
    assert_counted
    assert_empty @server.log.lines.grep(/Error/).grep_v(/it failed/)
  end

  def test_whatever_ends_an_answer
    3.times do
      assert_equal 500, status_of(large("/raise"))
      assert_equal 200, status_of(large("/size", method: "HEAD"), head: true)
      assert_equal 200, status_of(large("/noted"))
      assert_equal 413, status_of("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\n")
      assert_equal 200, status_of(large("/size", fields: "expect: 100-continue\r\n"))
      assert_equal 200, status_of(large("/size", fields: "connection: upgrade\r\nupgrade: x\r\n"))
      RawClient.open(@server.url) { |client| client.write(large("/size").byteslice(0, LARGE)) }
      assert_free
    end
  end

  def test_a_client_that_leaves_before_its_answer
    open.write(large("/stream?one")).await("begin").close
    assert_free
  end

  def test_a_late_answer_to_a_client_that_has_left
    open.write(large("/wait?one"))
    wait_until { get("/waiting") == "1" }
    @clients.last.reset
    get("/go")
    assert_free
  end

  def test_an_event_stream
    client = open.write(large("/visit?one", method: "GET", fields: "accept: text/event-stream\r\n")).await("data: hello")
    assert_free
    client.close
  end

  # Its env holds no bytes any more.
  def test_an_application_that_keeps_an_env
    assert_equal 200, status_of(large("/keep"))
    assert_equal "0", get("/kept")
    assert_free
  end

  # Nor do the files of its form.
  def test_an_application_that_keeps_a_file_of_a_form
    form = "--b\r\ncontent-disposition: form-data; name=a; filename=f\r\n\r\n#{"x" * LARGE}\r\n--b--\r\n"
    head = "POST /keep-file HTTP/1.1\r\nhost: a\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: #{form.bytesize}\r\n\r\n"
    assert_equal LARGE.to_s, RawClient.open(@server.url) { |client| client.request(head + form).body }
    assert_equal "0", get("/kept")
    assert_free
  end

  def test_a_body_that_stops
    @server.stop
    @server = NodeProcess.new(APP, args: ["--set", "total_body_bytes=1m", "--set", "max_body_bytes=900k", "--set", "body_timeout_ms=3000"])
    assert_equal 408, status_of(large("/size").byteslice(0, LARGE))
    assert_free
  end
end
