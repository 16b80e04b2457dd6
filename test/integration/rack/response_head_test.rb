# frozen_string_literal: true

# Status, header fields and framing of responses: what the server checks, what it decides, what HTTP/1.0 gets, and early
# hints.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackResponseHeadTest < RackCase
  def responding(status = 200, headers = {}, body = ["text"], **options)
    serve(->(_env) { [status, headers, body] }, lint: false, **options)
  end

  # Lines of the head in the order in which they came.
  def head_of(client, request = bytes("GET", "/", "Connection" => "close"))
    client.write(request)
    client.read_all.split("\r\n\r\n", 2)[0].split("\r\n")
  end

  # Status

  [200, 201, 299, 301, 400, 404, 418, 451, 500, 599, 999].each do |status|
    define_method("test_status_#{status}") { assert_equal status, get(responding(status)).status }
  end

  def test_status_line_has_the_usual_reason
    assert_equal "HTTP/1.1 200 OK", head_of(responding(200))[0]
    assert_equal "HTTP/1.1 404 Not Found", head_of(responding(404))[0]
    assert_match(/\AHTTP\/1\.1 299 /, head_of(responding(299))[0])
  end

  def test_a_status_that_is_a_string
    assert_equal 202, get(responding("202")).status
  end

  [0, 99, 100, 103, 199, 1000, -1, nil, "abc", "200\r\nx: y", [200], :ok].each do |status|
    define_method("test_status_#{status.inspect}_is_refused") do
      response = get(responding(status))
      assert_equal 500, response.status
      assert_nil response.header("x")
    end
  end

  # Header fields

  def test_names_and_values_are_sent_as_they_are
    lines = head_of(responding(200, { "x-one" => "1", "x-two" => "t w o", "etag" => '"x"' }))
    ["x-one: 1", "x-two: t w o", 'etag: "x"'].each { |line| assert_includes lines, line }
  end

  def test_names_with_capitals_are_tolerated
    response = get(responding(200, { "Content-Type" => "text/x", "X-One" => "1", "Content-Length" => "4" }))
    assert_equal ["text/x", "1", "4"], [response.header("content-type"), response.header("x-one"), response.header("content-length")]
  end

  def test_an_array_is_several_fields
    lines = head_of(responding(200, { "set-cookie" => %w[a=1 b=2 c=3] }))
    assert_equal(["set-cookie: a=1", "set-cookie: b=2", "set-cookie: c=3"], lines.grep(/set-cookie/))
  end

  def test_an_empty_array_is_no_field
    assert_empty head_of(responding(200, { "x-none" => [] })).grep(/x-none/)
  end

  def test_an_empty_value
    assert_includes head_of(responding(200, { "x-empty" => "" })).map(&:rstrip), "x-empty:"
  end

  def test_other_objects_become_strings
    response = get(responding(200, { "x-number" => 5, "x-symbol" => :six, :"x-key" => "seven" }))
    assert_equal %w[5 six seven], (%w[x-number x-symbol x-key].map { |name| response.header(name) })
  end

  def test_a_field_that_changes_another_on_its_way_to_a_string
    ["b" * 20, "b" * 300, "b\r\nx-c: d"].each do |later|
      first = "a" * 20
      second = Class.new do
        define_method(:to_s) do
          first.replace(later)
          "second"
        end
      end
      response = get(responding(200, { "x-a" => first, "x-b" => second.new }))
      assert_equal ["a" * 20, "second", nil], %w[x-a x-b x-c].map { |name| response.header(name) }
    end
  end

  def test_bytes_beyond_ascii_are_sent_as_they_are
    client = responding(200, { "x-one" => "gr\u00fc\u00df" })
    client.write(bytes("GET", "/", "Connection" => "close"))
    assert_includes client.read_all, "x-one: gr\u00fc\u00df\r\n".b
  end

  def test_many_fields
    headers = (1..500).to_h { |n| ["x-#{n}", "v" * 40] }
    response = get(responding(200, headers))
    assert_equal 500, response.fields.count { |name, _| name.start_with?("x-") }
  end

  def test_a_long_value
    assert_equal "v" * 60_000, get(responding(200, { "x-long" => "v" * 60_000 })).header("x-long")
  end

  def test_headers_may_be_anything_with_each
    pairs = Object.new
    def pairs.each
      yield ["x-one", "1"]
      yield "x-two", "2"
    end
    response = get(responding(200, pairs))
    assert_equal %w[1 2], (%w[x-one x-two].map { |name| response.header(name) })
  end

  def test_rack_headers
    headers = Rack::Headers.new
    headers["X-One"] = "1"
    assert_equal "1", get(responding(200, headers)).header("x-one")
  end

  def test_a_frozen_hash_is_not_touched
    headers = { "x-one" => "1" }.freeze
    client = responding(200, headers, Body.new("text"))
    2.times { assert_equal "1", get(client).header("x-one") }
    assert_equal({ "x-one" => "1" }, headers)
  end

  def test_headers_of_the_gateway_stay_inside
    assert_empty head_of(responding(200, { "rack.private" => "1", "x-one" => "1" })).grep(/rack/)
  end

  { "CR in a value" => { "x-bad" => "a\rInjected: 1" }, "LF in a value" => { "x-bad" => "a\nInjected: 1" },
    "CRLF in a value" => { "x-bad" => "a\r\nInjected: 1" }, "NUL in a value" => { "x-bad" => "a\0b" },
    "LF at the end" => { "x-bad" => "a\n" }, "LF in an array" => { "x-bad" => ["good", "a\nInjected: 1"] },
    "LF in a location" => { "location" => "/\r\nSet-Cookie: a=1" }, "LF in a name" => { "x-bad\nInjected" => "a" },
    "CR in a name" => { "x-bad\rInjected" => "a" }, "NUL in a name" => { "x\0bad" => "a" },
    "a colon in a name" => { "x:bad" => "a" }, "a blank in a name" => { "x bad" => "a" },
    "an empty name" => { "" => "a" }, "a name beyond ascii" => { "x-\u00fc" => "a" },
    "LF in content-type" => { "content-type" => "text/plain\nInjected: 1" } }.each do |what, headers|
    define_method("test_#{what.tr(" ", "_")}_is_refused") do
      body = Body.new("never")
      client = responding(200, headers, body)
      client.write(bytes("GET", "/", "Connection" => "close"))
      received = client.read_all
      assert_match(%r{\AHTTP/1\.1 500 }, received)
      refute_match(/injected|never|x-bad/i, received)
      assert_closed(body)
      assert_match(/error: .*header/m, log)
    end
  end

  def test_the_connection_lives_on_after_a_refused_response
    client = serve(lint: false) { |env| [200, env["PATH_INFO"] == "/bad" ? { "x" => "\n" } : {}, ["text"]] }
    assert_equal 500, get(client, "/bad").status
    assert_equal 200, get(client).status
  end

  # Framing

  def test_a_date_is_sent_once
    assert_equal 1, head_of(responding).grep(/\Adate: /i).size
    date = "Thu, 01 Jan 2026 00:00:00 GMT"
    assert_equal ["date: #{date}"], head_of(responding(200, { "date" => date })).grep(/\Adate: /i)
  end

  def test_a_length_that_is_right
    assert_equal "4", get(responding(200, { "content-length" => "4" })).header("content-length")
    assert_equal "4", get(responding(200, { "content-length" => 4 })).header("content-length")
  end

  # Header objects that only `each` refers to, collected while code of the application runs behind them.
  def test_headers_made_on_the_way_stay_alive
    headers = Object.new
    def headers.each
      20.times { |n| yield "x-made-#{n}", "value #{n} " * 10 }
    end
    body = Body.new("ok")
    def body.to_path
      GC.start
      Array.new(2000) { |n| "other bytes #{n} " * 10 }
      nil
    end
    answer = get(serve(lint: false) { [200, headers, body] })
    20.times { |n| assert_equal ("value #{n} " * 10).strip, answer.header("x-made-#{n}").strip }
  end

  def test_a_connection_token_counts_whole
    ["x-closed", "x, close-d", "\"close, \""].each do |list|
      client = responding(200, { "connection" => list })
      2.times { assert_equal 200, get(client).status }
    end
    ["x ,Close\t, y", "close,"].each do |list|
      assert_predicate get(responding(200, { "connection" => list })), :close?, list
    end
  end

  def test_more_than_the_length_is_cut_and_the_connection_closed
    [["123456789"], Body.new("1234", "56789")].each do |body|
      client = responding(200, { "content-length" => "4" }, body)
      client.write(bytes("GET", "/") * 2)
      assert_equal "1234", client.read_all.split("\r\n\r\n", 2)[1]
    end
  end

  def test_less_than_the_length_closes_the_connection
    [["12"], Body.new("1", "2")].each do |body|
      client = responding(200, { "content-length" => "4" }, body)
      client.write(bytes("GET", "/") * 2)
      assert_equal "12", client.read_all.split("\r\n\r\n", 2)[1]
    end
  end

  ["-1", "+4", "0x4", "4, 4", "four", "", "4 4", "9" * 30].each do |length|
    define_method("test_content_length_#{length.inspect}_is_refused") do
      assert_equal 500, get(responding(200, { "content-length" => length })).status
    end
  end

  def test_the_coding_is_the_servers
    response = get(responding(200, { "transfer-encoding" => "gzip, chunked", "content-length" => "4" }))
    assert_equal ["text", nil], [response.body, response.header("transfer-encoding")]
    response = get(responding(200, { "transfer-encoding" => "chunked" }, Body.new("te", "xt")))
    assert_equal ["text", "chunked"], [response.body, response.header("transfer-encoding")]
  end

  def test_no_length_in_204
    response = get(responding(204, { "content-length" => "4", "transfer-encoding" => "chunked" }))
    assert_nil response.header("content-length")
    assert_nil response.header("transfer-encoding")
  end

  def test_304_keeps_its_validators
    response = get(responding(304, { "etag" => '"x"', "cache-control" => "max-age=1" }, []))
    assert_equal ['"x"', "max-age=1", ""], [response.header("etag"), response.header("cache-control"), response.body]
  end

  # Persistence

  def test_1_1_stays_open
    client = responding
    3.times { refute_predicate get(client), :close? }
  end

  def test_1_1_closes_when_asked_to
    client = responding
    assert_predicate get(client, "/", "Connection" => "close"), :close?
    assert_predicate client, :closed?
  end

  def test_the_application_may_close
    client = responding(200, { "connection" => "close" })
    response = get(client)
    assert_equal "close", response.header("connection")
    assert_predicate client, :closed?
  end

  def test_1_0_closes
    client = responding
    response = get(client, "/", version: "1.0")
    assert_equal "text", response.body
    assert_predicate client, :closed?
  end

  def test_1_0_keep_alive
    client = responding
    2.times do
      response = get(client, "/", version: "1.0", "Connection" => "keep-alive")
      assert_equal ["text", "4", "keep-alive"],
                   [response.body, response.header("content-length"), response.header("connection").downcase]
    end
  end

  def test_1_0_keep_alive_needs_a_length
    client = responding(200, {}, Body.new("te", "xt"))
    response = get(client, "/", version: "1.0", "Connection" => "keep-alive")
    assert_equal ["text", :close], [response.body, response.framing]
    assert_predicate client, :closed?
  end

  def test_keep_alive_can_be_switched_off
    client = responding(keep_alive: 0)
    assert_predicate get(client), :close?
    assert_predicate client, :closed?
  end

  def test_requests_per_connection_can_be_limited
    client = responding(max_keep_alive: 3)
    assert_equal([false, false, true], Array.new(3) { get(client).close? })
    assert_predicate client, :closed?
  end

  # Early hints

  def hinting(hints, early_hints: 1, **options)
    serve(lint: false, early_hints: early_hints, **options) do |env|
      hint = env["rack.early_hints"]
      hint&.call(hints)
      [200, { "x-hints" => hint ? "yes" : "no" }, ["text"]]
    end
  end

  def test_early_hints
    client = hinting({ "link" => "</a.css>; rel=preload" })
    client.write(bytes("GET", "/"))
    hints = client.response(interim: true)
    assert_equal [103, "</a.css>; rel=preload"], [hints.status, hints.header("link")]
    response = client.response(interim: true)
    assert_equal [200, "text", nil], [response.status, response.body, response.header("link")]
  end

  def test_early_hints_beside_a_server_whose_options_were_refused
    half_made = Rondo::Server::Core.allocate
    options = { trusted_proxies: ["nonsense"] }
    assert_raises(Rondo::SettingError) { half_made.send(:initialize, ->(_) {}, {}, options) }
    client = hinting({ "link" => "</a.css>; rel=preload" })
    client.write(bytes("GET", "/"))
    assert_equal 103, client.response(interim: true).status
    refute_nil half_made # the collector has not taken it
  end

  def test_early_hints_leave_before_the_answer
    ahead = Queue.new
    client = serve(lint: false, early_hints: 1) do |env|
      env["rack.early_hints"].call({ "link" => "</a>" })
      ahead.pop
      [200, {}, []]
    end
    client.write(bytes("GET", "/"))
    assert_equal 103, client.response(interim: true).status
    ahead << 1
    assert_equal 200, client.response.status
  end

  def test_early_hints_of_several_links
    client = hinting({ "link" => ["</a>", "</b>"] })
    client.write(bytes("GET", "/"))
    hints = client.response(interim: true)
    assert_equal %w[</a> </b>], hints.fields.select { |name, _| name == "link" }.map(&:last)
  end

  def test_no_early_hints_by_default_nor_for_1_0
    client = hinting({ "link" => "</a>" }, early_hints: 0)
    client.write(bytes("GET", "/"))
    response = client.response(interim: true)
    assert_equal [200, "no"], [response.status, response.header("x-hints")]
    client = hinting({ "link" => "</a>" })
    client.write(bytes("GET", "/", version: "1.0"))
    assert_equal 200, client.response(interim: true).status
  end

  def test_early_hints_are_checked
    client = hinting({ "link" => "</a>\r\nInjected: 1" })
    client.write(bytes("GET", "/", "Connection" => "close"))
    refute_match(/injected/i, client.read_all)
  end

  def test_early_hints_behind_lint
    client = serve(early_hints: 1) do |env|
      env["rack.early_hints"].call({ "link" => "</a>" })
      [200, {}, []]
    end
    client.write(bytes("GET", "/"))
    assert_equal([103, 200], Array.new(2) { client.response(interim: true).status })
  end
end
