# frozen_string_literal: true

# The benchmarks' load client counts what a server really received: a small server of the test answers in every framing,
# in pieces, and the test compares the client's numbers with the server's.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require_relative "../../bench/measure"

class BenchClientTest < Minitest::Test
  # Answers every empty line with the next of the given answers, each in the pieces that it has.
  class Responder
    attr_reader :port, :connections, :requests, :bodies, :paths

    # @param tls [OpenSSL::SSL::SSLContext, nil]
    def initialize(answers, close: false, tls: nil)
      @answers = answers
      @tls = tls
      @close = close
      @connections = @requests = 0
      @bodies = []
      @paths = []
      @mutex = Mutex.new
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @thread = Thread.new { loop { serve(@listener.accept) } }
    end

    def stop
      @thread.kill.join
      @listener.close
    end

    private

    # A connection counts with its first request: the client may have opened one more before it knew that it has enough.
    def serve(socket)
      Thread.new do
        first = true
        socket = OpenSSL::SSL::SSLSocket.new(socket, @tls).tap { |secure| secure.sync_close = true }.accept if @tls
        while (head = socket.gets("\r\n\r\n"))
          @mutex.synchronize { @connections += 1 } if first
          first = false
          @paths << head[/ (\S+) /, 1]
          @bodies << socket.read(head[/Content-Length: (\d+)/, 1].to_i)
          answer(socket, @answers[count % @answers.size])
          break if @close
        end
      rescue SystemCallError, OpenSSL::SSL::SSLError
        nil # the client has everything that it came for
      ensure
        socket.close
      end
    end

    # One thread for each connection.
    def count
      @mutex.synchronize { (@requests += 1) - 1 }
    end

    def answer(socket, pieces)
      socket.to_io.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
      pieces.each { |piece| socket.write(piece) }
    end
  end

  LENGTH = ["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"].freeze
  PIECES = ["HTTP/1.1 200 OK\r\nContent-", "Length: 5\r\n\r", "\n", "he", "llo"].freeze
  CHUNKED = ["HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "2;x=f\r\nhe\r", "\n3\r\nllo\r\n",
             "0\r\nx-trailer: 1\r\n\r\n"].freeze
  NO_CONTENT = ["HTTP/1.1 204 No Content\r\n\r\n"].freeze
  INTERIM = ["HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n", *LENGTH].freeze
  FAILURE = ["HTTP/1.1 500 Oops\r\ncontent-length: 5\r\n\r\nsorry"].freeze
  CLOSE = ["HTTP/1.0 200 OK\r\nConnection: close\r\n\r\n", "hello"].freeze

  def setup
    Bench::Programs.build
  end

  def run_client(answers, *options, close: false, tls: nil)
    @responder = Responder.new(answers, close: close, tls: tls)
    command = [Bench::Programs.path("client"), "--json", "-d", "120", *options, "127.0.0.1:#{@responder.port}/x"]
    JSON.parse(IO.popen(command, &:read))
  ensure
    @responder.stop
  end

  def test_every_framing_is_counted_once
    [LENGTH, PIECES, CHUNKED, INTERIM].each do |answer|
      said = run_client([answer], "-c", "3", "-n", "300")

      assert_equal [300, 0, 0, 5, 5], said.values_at("requests", "errors", "non_2xx", "body_min", "body_max")
      assert_equal 300, @responder.requests
      assert_equal 3, @responder.connections
      assert_equal 300 * answer.sum(&:bytesize), said["bytes_in"]
    end
  end

  def test_answers_of_all_kinds_on_one_connection
    said = run_client([LENGTH, CHUNKED, NO_CONTENT, FAILURE, PIECES], "-c", "1", "-n", "500")

    assert_equal [500, 100, 0], said.values_at("requests", "non_2xx", "errors")
    assert_equal [0, 5, 500, 500], said.values_at("body_min", "body_max", "conn_min", "conn_max")
  end

  def test_paths_come_in_turn
    run_client([LENGTH], "-c", "1", "-n", "6", "--paths", "3")

    assert_equal %w[/x0 /x1 /x2 /x0 /x1 /x2], @responder.paths.first(6)
  end

  def test_pipelining_keeps_the_order_and_the_count
    said = run_client([LENGTH, PIECES], "-c", "4", "-p", "16", "-n", "1000")

    assert_equal [1000, 0, 0], said.values_at("requests", "errors", "reconnects")
    assert_equal 1000, @responder.requests
  end

  def test_a_new_connection_for_each_request
    said = run_client([LENGTH], "-c", "4", "-n", "200", "--close", close: true)

    assert_equal [200, 0, 0, 0], said.values_at("requests", "errors", "unclosed", "reconnects")
    assert_equal 200, @responder.connections
  end

  def tls_context
    Dir.mktmpdir do |folder|
      pair = Bench::Pair.new(:p256, folder)
      OpenSSL::SSL::SSLContext.new.tap do |context|
        context.add_certificate(OpenSSL::X509::Certificate.new(File.read(pair.cert)), OpenSSL::PKey.read(File.read(pair.key)))
        context.session_id_context = "bench"
      end
    end
  end

  def test_requests_over_tls
    said = run_client([LENGTH, PIECES, CHUNKED], "-c", "3", "-p", "4", "-n", "300", "--tls", "full", tls: tls_context)

    assert_equal [300, 0, 0, 5, 5, 0], said.values_at("requests", "errors", "non_2xx", "body_min", "body_max", "resumed")
    assert_equal 300, @responder.requests
  end

  def test_new_connections_over_tls_with_full_and_resumed_handshakes
    tls = tls_context
    said = run_client([LENGTH], "-c", "1", "-n", "20", "--close", "--tls", "full", close: true, tls: tls)
    assert_equal [20, 0, 0], said.values_at("requests", "errors", "resumed")

    said = run_client([LENGTH], "-c", "1", "-n", "20", "--close", "--tls", "resumed", close: true, tls: tls)
    assert_equal [20, 0, 19], said.values_at("requests", "errors", "resumed")
  end

  def test_idle_connections_over_tls
    @responder = Responder.new([LENGTH], tls: tls_context)
    command = [Bench::Programs.path("client"), "--idle", "5", "--tls", "full", "127.0.0.1:#{@responder.port}/x"]
    IO.popen(command, "r+") do |io|
      assert_equal({ "idle" => 5, "errors" => 0 }, JSON.parse(io.gets))
      assert_equal 5, @responder.requests
    end
  ensure
    @responder.stop
  end

  def test_the_first_answers_do_not_count
    said = run_client([LENGTH], "-c", "3", "-n", "100", "--skip", "30")

    assert_equal [100, 30, 0], said.values_at("requests", "skipped", "errors")
    assert_equal 130, @responder.requests
    assert_equal 100 * LENGTH.sum(&:bytesize), said["bytes_in"]
  end

  def test_answers_that_are_still_to_come_are_left
    said = run_client([["HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell"]], "-c", "2", "-d", "0.05", "--leave")

    assert_equal [0, 0], said.values_at("requests", "errors")
    assert_operator said["longest_us"], :>, 0
  end

  def test_connections_one_by_one
    said = run_client([LENGTH], "-c", "4", "-n", "10", "--close", "--every", "2000", close: true)

    assert_equal [10, 0], said.values_at("requests", "errors")
    assert_operator said["seconds"], :>=, 0.018
  end

  def test_a_body_that_ends_with_the_connection
    said = run_client([CLOSE], "-c", "2", "-n", "50", close: true)

    assert_equal [50, 0, 5], said.values_at("requests", "errors", "body_min")
  end

  def test_a_connection_that_ends_too_early_is_an_error
    said = run_client([["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell"], LENGTH], "-c", "1", "-n", "5",
                      close: true)

    assert_equal 5, said["requests"]
    assert_operator said["errors"], :>=, 5
  end

  def test_several_requests_are_sent_in_turn
    names = %i[plain post]
    files = names.flat_map { |name| ["--request", Bench::Programs.request_file(name)] }
    said = run_client([LENGTH], "-c", "1", "-n", "100", "-p", "3", *files)

    assert_equal 100, said["requests"]
    assert_equal ["", "ab"] * 50, @responder.bodies
  end

  def test_percentiles_are_in_order
    said = run_client([LENGTH], "-c", "2", "-n", "200")
    percentiles = said.values_at("p50_us", "p90_us", "p99_us", "p999_us", "longest_us")

    assert_operator percentiles.first, :>, 0
    assert_equal percentiles.min, percentiles.first
  end

  def test_idle_connections_are_held_until_stdin_ends
    @responder = Responder.new([LENGTH])
    command = [Bench::Programs.path("client"), "--idle", "20", "127.0.0.1:#{@responder.port}"]
    IO.popen(command, "r+") do |io|
      assert_equal({ "idle" => 20, "errors" => 0 }, JSON.parse(io.gets))
      assert_equal 20, @responder.connections
    end
  ensure
    @responder.stop
  end

  def test_other_machines_are_refused
    said = IO.popen([Bench::Programs.path("client"), "192.0.2.1:80", { err: %i[child out] }], &:read)

    assert_includes said, "only 127.x.x.x and unix: are allowed"
  end
end
