# frozen_string_literal: true

# The client in plain Ruby: what it sends, what its errors say, its deadline, and that it needs nothing compiled.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo"
require "rondo/pubsub/publisher"
require "socket"
require "tmpdir"

class PublisherTest < Minitest::Test
  Publisher = Rondo::Publisher
  PUBLISHED = "HTTP/1.1 200 OK\r\nContent-Length: 16\r\nConnection: close\r\n\r\n{\"published\":1}\n"

  def setup
    @server = TCPServer.new("127.0.0.1", 0)
    @url = "http://127.0.0.1:#{@server.addr[1]}"
  end

  def teardown
    @server.close
    @thread&.kill
  end

  def test_what_is_sent
    asked = answer_with(PUBLISHED)
    assert Publisher.new(@url, token: "secret").publish("news", "☃")
    head, body = asked.pop.split("\r\n\r\n", 2)
    assert_match(%r{\APOST /publish HTTP/1.1\r\n}, head)
    assert_match(/^authorization: Bearer secret\r?$/i, head)
    assert_equal({ "channel" => "news", "data" => "☃" }, JSON.parse(body))
  end

  def test_a_batch_and_an_address_as_the_state_file_has_it
    asked = answer_with(PUBLISHED.sub(":1}\n", ":2}\n"))
    assert_equal 2, Publisher.new(@url.sub("http", "tcp")).publish_all([[:a, { x: 1 }], ["b", nil]])
    head, body = asked.pop.split("\r\n\r\n", 2)
    refute_match(/authorization/i, head)
    assert_equal [{ "channel" => "a", "data" => { "x" => 1 } }, { "channel" => "b", "data" => nil }], JSON.parse(body)
  end

  def test_a_unix_socket
    Dir.mktmpdir do |folder|
      server = UNIXServer.new(File.join(folder, "control.sock"))
      asked = answer_with("HTTP/1.1 100 Continue\r\n\r\n#{PUBLISHED}", server)
      assert Publisher.new("unix://#{folder}/control.sock?mode=0600", token: "a").publish("news", "m")
      assert_match(/^host: localhost\r?$/i, asked.pop)
    ensure
      server&.close
    end
  end

  ANSWERS = {
    ["403 Forbidden", '{"error":"wrong token"}'] => [403, 0, /says 403: wrong token\z/],
    ["503 Service Unavailable", '{"error":"no room","published":3}'] => [503, 3, /says 503: no room\z/],
    ["413 Content Too Large", ""] => [413, 0, /says 413: the body is too long; without the right token 4 KiB are\z/],
    ["404 Not Found", "<html>"] => [404, 0, /says 404: it is no control server that publishes\z/],
    ["500 Internal Server Error", "[1]"] => [500, 0, /says 500: it does not publish\z/],
    ["200 OK", "hello"] => [200, 0, /does not publish: its answer is none of a control server/]
  }.freeze

  def test_errors_of_the_server
    ANSWERS.each do |(status, body), (code, published, words)|
      answer_with("HTTP/1.1 #{status}\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
      error = assert_raises(Publisher::Error, status) { Publisher.new(@url).publish("a", "b") }
      assert_equal [code, published, 1], [error.status, error.published, error.message.lines.size]
      assert_match words, error.message
      @thread.join
    end
  end

  # Which messages may be sent again, and which ones would come twice.
  MESSAGES = {
    ["503 Service Unavailable", '{"error":"no room","published":1,"messages":[true,false]}'] => [1, [true, false]],
    ["504 Gateway Timeout", '{"error":"late","published":1,"messages":[17,null]}'] => [1, [17, nil]],
    ["504 Gateway Timeout", '{"error":"stuck"}'] => [0, [nil, nil]],
    ["503 Service Unavailable", '{"error":"too many","published":0}'] => [0, [false, false]],
    ["503 Service Unavailable", '{"error":"no room","published":1,"messages":[true]}'] => [1, [nil, nil]],
    ["400 Bad Request", '{"error":"not JSON"}'] => [0, [false, false]],
    ["502 Bad Gateway", "of a proxy"] => [0, [nil, nil]],
    ["200 OK", "hello"] => [0, [nil, nil]]
  }.freeze

  def test_what_is_known_of_each_message
    MESSAGES.each do |(status, body), (published, messages)|
      answer_with("HTTP/1.1 #{status}\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
      error = assert_raises(Publisher::Error, status) { Publisher.new(@url).publish_all([%w[a b], %w[c d]]) }
      assert_equal [published, messages], [error.published, error.messages], body
      @thread.join
    end
  end

  # Of a proxy, or of somebody else.
  ODD = {
    '{"published":"x"}' => /none of a control server/, '{"published":{}}' => /none of a control server/, '{"published":null}' => /none of a control server/,
    '{"published":1,"messages":["x",{}]}' => nil, '{"error":{"a":[1]},"published":[]}' => /says 503: it does not publish\z/,
    '{"error":"a\\nb\\u001b[31m","published":"1"}' => /says 503: a b \[31m\z/, "{\"error\":\"#{"x" * 60_000}\"}" => /says 503: x{300}\z/,
    "\xff" => /says 503: it does not publish\z/, ("[" * 5000) => /says 503: it does not publish\z/
  }.freeze

  def test_an_odd_answer_is_an_error_of_one_short_line
    ODD.each do |body, words|
      answer_with("HTTP/1.1 #{body.include?("error") || !body.start_with?("{") ? "503 No" : "200 OK"}\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n#{body}")
      next assert_equal([true, true], Publisher.new(@url).publish_all([%w[a b], %w[c d]], confirm: 1)) unless words

      error = assert_raises(Publisher::Error, body[0, 40]) { Publisher.new(@url).publish_all([%w[a b], %w[c d]]) }
      assert_match words, error.message
      assert_equal [1, 0, [nil, nil]], [error.message.lines.size, error.published, error.messages]
      @thread.join
    end
  end

  def test_the_answer_of_the_engine
    body = "{\"published\":2,\"messages\":[1700000000000000,true]}\n"
    head = "HTTP/1.1 200 OK\r\nContent-Length: #{body.bytesize}\r\nConnection: close\r\n\r\n"
    asked = answer_with(head + body)
    assert_equal [1_700_000_000_000_000, true], Publisher.new(@url).publish_all([%w[a b], %w[c d]], confirm: 2.5)
    assert_match(%r{\APOST /publish\?confirm=2.500 HTTP/1.1\r\n}, asked.pop)
    @thread.join
    asked = answer_with("HTTP/1.1 200 OK\r\nContent-Length: 30\r\nConnection: close\r\n\r\n{\"published\":1,\"messages\":[7]}")
    assert_equal 7, Publisher.new(@url).publish("a", "b", confirm: 1)
    assert_match(/confirm=1.000 /, asked.pop)
    [0, -1, 31, "1", Float::NAN, true].each do |confirm|
      assert_raises(ArgumentError, confirm.inspect) { Publisher.new(@url).publish("a", "b", confirm: confirm) }
    end
  end

  def test_nobody_there
    url = @url
    @server.close
    error = assert_raises(Publisher::Error) { Publisher.new(url).publish("a", "b") }
    assert_nil error.status
    assert_equal [false], error.messages
    assert_equal "no control server at #{url}: Connection refused", error.message
    assert_match(/\Ano control server at unix:...none: No such file/, assert_raises(Publisher::Error) { Publisher.new("unix:///none").publish("a", "b") }.message)
    @server = TCPServer.new("127.0.0.1", 0)
  end

  def test_nonsense
    ["", "nonsense\r\n\r\n", "SSH-2.0-x\r\n"].each do |bytes|
      answer_with(bytes)
      error = assert_raises(Publisher::Error, bytes) { Publisher.new(@url).publish("a", "b") }
      assert_nil error.status
      @thread.join
    end
  end

  def test_the_deadline
    error = assert_raises(Publisher::Error) { Publisher.new(@url, timeout: 0.2).publish("a", "b") } # nobody accepts
    assert_match(/\Ano answer from #{@url} within 0.2 s\z/, error.message)
    assert_equal [nil], error.messages
  end

  def test_what_is_refused_before_anything_is_sent
    ["", "foo", "ftp://a", "http://", "http://a:b@c", "http://a b", "http://a?b", nil].each do |url|
      assert_match(/is not the address of a control server/, assert_raises(ArgumentError, url.inspect) { Publisher.new(url) }.message)
    end
    ["http://a:secret@b", "http://a:se/secret@b", "tcp:/a:secret@b", "http://a:secret@b@c", "a:secret@b", "http://a:secret"].each do |url|
      message = assert_raises(ArgumentError, url) { Publisher.new(url) }.message
      refute_includes message, "secret"
      assert_equal 1, message.lines.size
    end
    ["", "a b", "a\r\nb", "ü", "a" * 513].each { |token| assert_raises(ArgumentError, token) { Publisher.new(@url, token: token) } }
    [0, -1, "5", nil].each { |time| assert_raises(ArgumentError, time.inspect) { Publisher.new(@url, timeout: time) } }
    cycle = {}.tap { |hash| hash[:itself] = hash }
    ["\xff", Float::NAN, ["\xff"], cycle, { deep: [cycle] }].each { |data| assert_raises(ArgumentError, data.inspect) { Publisher.new(@url).publish("a", data) } }
    assert_raises(ArgumentError) { Publisher.new(@url).publish("\xff", "a") }
    refute_includes Publisher.new(@url, token: "hidden").inspect, "hidden"
  end

  # Parts of it would be published as something else.
  def test_a_batch_of_another_shape
    publisher = Publisher.new("http://127.0.0.1:1")
    [%w[news hello], [%w[news one two]], [["news"]], [%w[news one], "jobs"], [[]], [nil], [{ "news" => "one" }], "news", nil, 5].each do |batch|
      error = assert_raises(ArgumentError, batch.inspect) { publisher.publish_all(batch) }
      assert_equal "a batch is an Array of [channel, data]", error.message
    end
  end

  def test_a_batch_of_channels_with_their_data
    asked = answer_with(PUBLISHED.sub(":1}\n", ":2}\n"))
    assert_equal 2, Publisher.new(@url).publish_all({ "news" => "one", jobs: { done: 7 } })
    assert_includes asked.pop, '[{"channel":"news","data":"one"},{"channel":"jobs","data":{"done":7}}]'
  end

  def test_it_needs_nothing_compiled
    script = "require 'rondo/pubsub/publisher'; p Rondo::Publisher.new('http://a'); p $LOADED_FEATURES.grep(/rondo\\.so|rondo\\.rb/)"
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{File.expand_path("../../../lib", __dir__)}", "-e", script)
    assert status.success?, output
    assert_equal "#<Rondo::Publisher http://a>\n[]\n", output
  end

  private

  # @return [Queue] of what one client sends
  def answer_with(bytes, server = @server)
    asked = Queue.new
    @thread = Thread.new do
      client = server.accept
      text = +""
      text << client.readpartial(4096) until text =~ /content-length: (\d+)/i && text.include?("\r\n\r\n") && text.split("\r\n\r\n", 2).last.bytesize >= Regexp.last_match(1).to_i
      asked << text
      client.write(bytes)
      client.close
    end
    asked
  end
end
