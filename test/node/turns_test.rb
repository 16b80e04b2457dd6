# frozen_string_literal: true

# Pipelined requests of the Node engine: one after the other, and bounded (engine/turns.js).
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/raw_client"
require "support/waiting"
require "tempfile"

class NodeTurnsTest < Minitest::Test
  include Waiting

  APP = File.expand_path("waiting.ru", __dir__)
  UPGRADE = "connection: upgrade\r\nupgrade: x\r\n"

  def setup
    @servers = []
    @clients = []
    NodeProcess.only_on_node(self, "a client waits for its answer")
  end

  def teardown
    @clients.each(&:close)
    @servers.each(&:stop)
  end

  def server(*args)
    @server ||= NodeProcess.new(APP, args: args).tap { |started| @servers << started }
  end

  def open
    RawClient.new(server.url).tap { |client| @clients << client }
  end

  def get(path)
    RawClient.open(server.url) { |client| client.request("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n").body }
  end

  def request(path, fields = "") = "GET #{path} HTTP/1.1\r\nhost: a\r\n#{fields}\r\n"

  def wait_for_waiting(count)
    wait_until { get("/waiting") == count.to_s }
  end

  def test_one_after_the_other
    client = open.write(request("/parts?1") + request("/parts?2") + request("/size"))
    2.times do |index|
      wait_for_waiting(1)
      get("/go")
      assert_equal (index + 1).to_s, client.response.body
    end
    assert_equal "0", client.response.body
  end

  def test_bodies_and_expectations_in_their_turn
    post = "POST /size HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n"
    client = open.write("#{request("/parts?1")}#{post}\r\n#{"x" * 100_000}#{post}expect: 100-continue\r\n\r\n")
    wait_for_waiting(1)
    get("/go")
    assert_equal %w[1 100000], Array.new(2) { client.response.body }
    assert_equal 100, client.response(interim: true).status
    assert_equal "100000", client.write("x" * 100_000).response.body
  end

  # A client that sends for ever. None of its requests has an answer that would stop Node.
  def test_a_connection_is_not_read_while_many_wait
    client = open
    requests = request("/parts?1") * 1000
    sent = 0
    while sent < 40_000_000 && client.socket.wait_writable(2)
      part = client.socket.write_nonblock(requests.byteslice((sent % requests.bytesize)..), exception: false)
      sent += part if part.is_a?(Integer)
    end
    assert_operator sent, :<, 40_000_000
    3.times do
      wait_for_waiting(1)
      get("/go")
      assert_equal "1", client.response.body
    end
  end

  def test_what_all_connections_may_have_waiting
    server("--set", "total_pipelined_requests=20")
    first = open.write(request("/parts?1") + (request("/size") * 15))
    wait_for_waiting(1)
    second = open.write(request("/parts?2") + (request("/size") * 15))
    server.wait_for_log(/20 requests wait for earlier answers \(total_pipelined_requests\): more are dropped/)
    wait_for_waiting(2)
    get("/go")
    assert_equal ["1"] + (["0"] * 15), Array.new(16) { first.response.body }
    assert_equal ["2", true], [second.response.body, second.closed?]
    assert_equal ["0"] * 15, open.write(request("/size") * 15).then { |client| Array.new(15) { client.response.body } }
  end

  def test_nothing_is_served_behind_the_last_answer
    { "connection: close\r\n" => 200, "content-length: 99999999999\r\n" => 413, "transfer-encoding: gzip\r\n" => 501 }.each do |field, status|
      client = open.write(request("/size", field) + request("/called?behind"))
      assert_equal [status, true], [client.response.status, client.closed?], field
    end
    client = open.write("GET /size HTTP/1.1\r\n\r\n#{request("/called?behind")}")
    assert_equal [400, true], [client.response.status, client.closed?]
    client = open.write(request("/parts?1") + request("/%") + request("/size", "x: #{"y" * 90_000}\r\n") + request("/called?behind"))
    wait_for_waiting(1)
    get("/go")
    assert_equal [200, 200, 431, true], [*Array.new(3) { client.response.status }, client.closed?]
    assert_equal "", get("/notes")
  end

  def test_a_client_that_leaves_while_its_requests_wait
    server("--set", "total_pipelined_requests=20")
    2.times do
      client = open.write(request("/parts?1") + request("/called?behind") + (request("/size") * 14))
      wait_for_waiting(1)
      client.reset
      get("/go")
    end
    client = open.write(request("/size") * 20)
    assert_equal ["0"] * 20, Array.new(20) { client.response.body }
    assert_equal "", get("/notes")
  end

  # CONNECT, and other requests for which Node gives the connection away.
  def test_given_away_behind_an_answer
    ["CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\n\r\n", request("/size", UPGRADE)].each do |last|
      client = open.write(request("/parts?1") + request("/size") + last)
      wait_for_waiting(1)
      get("/go")
      statuses = Array.new(3) { client.response.status }
      assert_equal [200, 200, last.start_with?("CONNECT") ? 405 : 200, true], [*statuses, client.closed?]
    end
  end

  # It is sent in many parts, for which Node's own listeners wait.
  def test_given_away_behind_a_large_file
    Tempfile.create("rondo") do |file|
      File.truncate(file.path, 30_000_000)
      client = open.write(request("/file?#{file.path}") + request("/size", UPGRADE))
      wait_for_waiting(1)
      get("/go")
      assert_equal [30_000_000, "0"], [client.response.body.bytesize, client.response.body]
    end
  end
end
