# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Rows 33 and 35-39: interim responses, what the server sends for any answer of the application, and that every body is
# closed once. The misbehaving answers are the special paths of echo.ru.

require "json"
require "minitest/autorun"
require_relative "../support/raw_client"
require_relative "../support/server_process"

class TestResponses < Minitest::Test
  APP = File.expand_path("echo.ru", __dir__)

  @servers = {}
  class << self
    def server(**settings)
      @servers[settings] ||= ServerProcess.new(APP, settings: settings)
    end

    attr_reader :servers
  end
  Minitest.after_run { servers.each_value(&:stop) }

  # Row 36: CR, LF and NUL never leave. The mistake of the application becomes a 500 and a line in the log.
  %w[crlf-value cr-value lf-value nul-value crlf-name lf-name nul-name colon-name empty-name crlf-array lf-array
     status-0 status-99 status-1000 status-word bad-length].each do |path|
    define_method("test_36_#{path.tr("-", "_")}_is_refused") do
      bytes = exchange("GET /#{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
      refute_match(/injected/i, bytes)
      response = ResponseParser.take(bytes, eof: true)
      assert_equal 500, response.status
      refute response.header("x-bad")
      assert_empty bytes
    end
  end

  def test_36_a_refused_answer_is_logged
    before = server.log.bytesize
    get("/crlf-value")
    assert server.wait_for_log(/x-bad|header/i, from: before)
  end

  def test_36_an_array_becomes_repeated_fields
    response = get("/array")
    assert_equal 200, response.status
    cookies = response.fields.filter_map { |name, value| value if name == "set-cookie" }
    assert_equal %w[a=1 b=2], cookies
  end

  def test_36_a_name_with_capitals_is_sent_or_refused_but_never_twice
    response = get("/upper-case")
    assert_includes [200, 500], response.status
    types = response.fields.count { |name, _| name.downcase == "content-type" }
    assert_operator types, :<=, 1
  end

  def test_36_headers_of_the_gateway_stay_inside
    response = get("/rack-header")
    assert_equal "1", response.header("x-seen")
    assert_nil response.header("rack.private")
  end

  def test_36_unusual_but_valid_status_codes
    assert_equal 418, get("/status-418").status
    assert_equal 599, get("/status-599").status
  end

  def test_36_early_hints_are_checked_too
    hinting = self.class.server(early_hints: true)
    with_client(hinting) do |client|
      client.write("GET /hints HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal 103, client.response(interim: true).status
      assert_equal 200, client.response(interim: true).status
      %w[hints-crlf hints-array].each do |path|
        client.write("GET /#{path} HTTP/1.1\r\nHost: a\r\n\r\n")
        response = client.response
        refute_match(/injected/, response.fields.inspect)
        assert_includes [200, 500], response.status
      end
    end
  end

  def test_35_early_hints_do_not_go_to_old_clients
    with_client(self.class.server(early_hints: true)) do |client|
      client.write("GET /hints HTTP/1.0\r\n\r\n")
      assert_equal 200, client.response(interim: true).status
    end
  end

  # Row 37.
  def test_37_more_than_the_content_length_is_cut_and_closes
    with_client do |client|
      client.write("GET /short-length HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_equal "four", client.response.body
      assert_predicate client, :closed?
    end
  end

  def test_37_less_than_the_content_length_closes
    with_client do |client|
      client.write("GET /long-length HTTP/1.1\r\nHost: a\r\n\r\n")
      bytes = client.read_all
      assert bytes.end_with?("four") || bytes.start_with?("HTTP/1.1 500"), bytes
    end
  end

  def test_37_length_beside_coding_is_one_framing
    response = get("/both")
    assert_includes [200, 500], response.status
    assert_equal "four", response.body if response.status == 200
  end

  # Row 35.
  def test_35_no_body_and_no_length_where_there_must_be_none
    with_client do |client|
      [204, 304].each do |status|
        response = client.request("GET /#{status} HTTP/1.1\r\nHost: a\r\n\r\n")
        assert_equal status, response.status
        assert_nil response.header("transfer-encoding")
      end
      assert_equal 204, client.request("GET /204-length HTTP/1.1\r\nHost: a\r\n\r\n").status
      response = client.request("HEAD /parts HTTP/1.1\r\nHost: a\r\n\r\n", head: true)
      assert_equal 200, response.status
      assert_equal 200, client.request("GET /after HTTP/1.1\r\nHost: a\r\n\r\n").status
    end
  end

  def test_35_an_old_client_gets_no_chunks
    with_client do |client|
      client.write("GET /parts HTTP/1.0\r\n\r\n")
      response = client.response
      refute_equal :chunked, response.framing
      assert_equal "onetwothree", response.body
    end
    with_client do |client|
      client.write("GET /parts HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
      response = client.response
      refute_equal :chunked, response.framing
      assert_equal "onetwothree", response.body
    end
  end

  def test_35_parts_of_unknown_length_are_chunked
    response = get("/parts")
    assert_equal "onetwothree", response.body
    assert_includes %i[chunked length], response.framing
  end

  def test_35_an_empty_body_is_framed
    response = get("/empty")
    assert_equal "", response.body
    refute_equal :close, response.framing
  end

  def test_35_one_date_only
    response = get("/own-date")
    dates = response.fields.count { |name, _| name.downcase == "date" }
    assert_equal 1, dates
  end

  def test_35_the_application_may_close
    with_client do |client|
      response = client.request("GET /connection-close HTTP/1.1\r\nHost: a\r\n\r\n")
      assert_predicate response, :close?
      assert_predicate client, :closed?
    end
  end

  # Row 33.
  def test_33_continue_comes_when_the_application_reads
    with_client do |client|
      client.write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
      assert_equal 100, client.response(interim: true).status
      client.write("hello")
      assert_equal "hello", JSON.parse(client.response(interim: true).body)["body"]
      assert_equal 200, client.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").status
    end
  end

  def test_33_no_continue_when_the_body_is_there
    with_client do |client|
      client.write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello")
      assert_equal 200, client.response(interim: true).status
    end
  end

  def test_33_no_continue_to_old_clients
    with_client do |client|
      client.write("POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello")
      assert_equal 200, client.response(interim: true).status
    end
  end

  def test_33_an_early_final_answer_without_continue_closes
    with_client do |client|
      client.write("POST /unread HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
      response = client.response(interim: true)
      # A server that reads bodies ahead of the application asks for this body too.
      if response.status == 100
        client.write("hello")
        response = client.response(interim: true)
      else
        assert_predicate response, :close?
      end
      assert_equal 200, response.status
    end
  end

  def test_33_too_large_is_said_before_the_body_comes
    with_client do |client|
      client.write("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2000000000\r\n\r\n")
      assert_equal 413, client.response(interim: true).status
      assert_predicate client, :closed?
    end
  end

  # Row 38: in every case one close and one response_finished.
  { "/count/parts" => 200, "/count/204" => 204, "/count/304" => 304, "/count/short-length" => 200, "/count/array" => 200,
    "/count/crlf-value" => 500, "/count/status-0" => 500, "/count/empty" => 200 }.each do |path, status|
    define_method("test_38_close_runs_once_for_#{path.delete_prefix("/count/").tr("-", "_")}") do
      assert_closed_once { assert_equal status, get(path).status }
    end
  end

  def test_38_close_runs_once_for_head
    assert_closed_once { with_client { |client| client.request("HEAD /count/parts HTTP/1.1\r\nHost: a\r\n\r\n", head: true) } }
  end

  def test_38_a_body_that_raises_never_looks_complete
    assert_closed_once do
      with_client do |client|
        client.write("GET /count/body-raises HTTP/1.1\r\nHost: a\r\n\r\n")
        bytes = client.read_all
        refute bytes.end_with?("\r\n0\r\n\r\n"), bytes
        assert_includes bytes, "HTTP/1.1 "
      end
    end
  end

  def test_38_a_body_that_raises_at_once_is_an_error
    assert_closed_once do
      with_client do |client|
        client.write("GET /count/body-raises-early HTTP/1.1\r\nHost: a\r\n\r\n")
        bytes = client.read_all
        refute bytes.end_with?("\r\n0\r\n\r\n"), bytes
      end
    end
  end

  def test_38_a_body_that_raises_before_its_length_closes
    assert_closed_once do
      with_client do |client|
        client.write("GET /count/body-raises-length HTTP/1.1\r\nHost: a\r\n\r\n")
        bytes = client.read_all
        assert bytes.end_with?("first") || bytes.start_with?("HTTP/1.1 500"), bytes
      end
    end
  end

  def test_38_a_client_that_leaves_ends_the_body
    assert_closed_once do
      with_client do |client|
        client.write("GET /count/endless HTTP/1.1\r\nHost: a\r\n\r\n")
        client.read_some
        client.reset
      end
    end
  end

  def test_38_an_exception_is_a_500_and_the_server_goes_on
    with_client do |client|
      assert_equal 500, client.request("GET /raise HTTP/1.1\r\nHost: a\r\n\r\n").status
    end
    assert_equal 200, get("/").status
    server.wait_for_log(/the application failed/)
  end

  # Row 30.
  def test_30_input_cut_short_is_never_read_as_whole
    before = counters
    ["Content-Length: 10\r\n\r\nhello", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"].each do |rest|
      with_client do |client|
        client.write("POST /rescue-input HTTP/1.1\r\nHost: a\r\n#{rest}").half_close
        client.read_all
      end
    end
    assert_equal before["whole_input"], counters["whole_input"]
  end

  # Row 39.
  def test_39_the_log_shows_no_control_bytes
    ServerProcess.run(APP, args: ["-v"]) do |logging|
      with_client(logging) { |client| client.request("GET /%1b[31m?%0d HTTP/1.1\r\nHost: a\r\nUser-Agent: \xE2\x80\xAE\r\n\r\n") }
      with_client(logging) { |client| client.request("GET /\e[31m\x07 HTTP/1.1\r\nHost: a\r\n\r\n") }
      with_client(logging) { |client| client.request("GET /last HTTP/1.1\r\nHost: a\r\n\r\n") }
      logging.wait_for_log(%r{/last})
      refute_match(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/n, logging.log.b)
    end
  end

  private

  def server
    self.class.server
  end

  def with_client(target = server, &block)
    RawClient.open(target.url, &block)
  end

  def get(path)
    with_client { |client| return client.request("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n") }
  end

  def exchange(bytes)
    with_client { |client| return client.write(bytes).read_all }
  end

  def counters
    Hash.new(0).merge(JSON.parse(get("/__counters").body))
  end

  # The close may come after the last byte of the response, so this waits for the counters.
  def assert_closed_once
    before = counters
    yield
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + RawClient::DEADLINE
    after = counters
    until done?(before, after) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.01)
      after = counters
    end
    assert_equal before["closed"] + 1, after["closed"], "body.close"
    assert_equal before["finished"] + 1, after["finished"], "rack.response_finished"
  end

  def done?(before, after)
    after["closed"] > before["closed"] && after["finished"] > before["finished"]
  end
end
