# frozen_string_literal: true

# Both engines get the same bytes, and give the same bytes back: heads, framing, bodies, ends of connections. The few
# answers that differ are named.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/node_process"
require "support/plain_answer"
require "support/raw_client"

class SameAnswersTest < Minitest::Test
  APP = File.expand_path("answers.ru", __dir__)
  LAST = "connection: close\r\n"

  # @return [String] a request whose answer ends the connection
  def self.request(method, target, fields = "", body = "", version: "1.1")
    "#{method} #{target} HTTP/#{version}\r\nhost: a\r\n#{fields}#{LAST}\r\n#{body}"
  end

  def self.get(target, fields = "") = request("GET", target, fields)

  def self.post(target, body, fields = "content-length: #{body.bytesize}\r\n") = request("POST", target, fields, body)

  FIXED = %w[empty parts array 204 304 418 date close rack text coding short bad-length crlf name status nil nothing
             raise each each-length call file].freeze
  UTF8 = "grün, 猫"
  BYTES = "\x00\xFF\n\xFEab".b
  ROWS = {
    **FIXED.to_h { |name| [name, get("/#{name}")] },
    **%w[empty parts 204 304 text each each-length call file].to_h { |name| ["HEAD #{name}", request("HEAD", "/#{name}")] },
    **%w[parts each call 204].to_h { |name| ["1.0 #{name}", request("GET", "/#{name}", version: "1.0")] },
    "long" => get("/long"),
    "range" => get("/file", "range: bytes=2-5\r\n"),
    "last bytes" => get("/file", "range: bytes=-7\r\n"),
    "a range too far" => get("/file", "range: bytes=999999-\r\n"),
    "two ranges" => get("/file", "range: bytes=0-1,4-5\r\n"),
    "below" => get("/below/x?y"), "below itself" => get("/below"), "beside" => get("/belowx"),
    "env" => get("/a%20b?x=1&y", "X-One: 1\r\nx-one: 2\r\nCookie: a=1\r\nCookie: b=2\r\nX_Under: 1\r\nProxy: p\r\n"),
    "env of a body" => post("/seen", "abc", "content-length: 3\r\ncontent-type: text/x\r\n"),
    "env of chunks" => post("/seen", "3\r\nabc\r\n0\r\n\r\n", "transfer-encoding: chunked\r\n"),
    "absolute form" => get("http://b:81/x?y"),
    "asterisk" => request("OPTIONS", "*"),
    "port" => "GET /p HTTP/1.1\r\nhost: example.com:8080\r\n#{LAST}\r\n",
    **%w[POST PUT PATCH DELETE GET QUERY].to_h { |name| ["#{name} echo", request(name, "/echo", "content-length: 3\r\n", "abc")] },
    "echo of UTF-8" => post("/echo", UTF8), "echo of bytes" => post("/echo", BYTES),
    "echo of chunks" => post("/echo", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "transfer-encoding: chunked\r\n"),
    "lines" => post("/lines", "a\nbc\n\nd"), "read" => post("/read", "abcdef\nghi"), "rewind" => post("/rewind", "abcdef"),
    "no body" => get("/read"), "json" => post("/json", "{\"a\":[1,null,\"#{UTF8}\",true]}"),
    "continue" => post("/echo", "abc", "content-length: 3\r\nexpect: 100-continue\r\n"),
    "too large" => post("/echo", "", "content-length: 99999999999\r\n"),
    "no host" => "GET / HTTP/1.1\r\n#{LAST}\r\n",
    "pipelined" => "GET /parts HTTP/1.1\r\nhost: a\r\n\r\nPOST /echo HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nxy#{get("/each")}",
    "kept by 1.0" => "GET /parts HTTP/1.0\r\nhost: a\r\nconnection: keep-alive\r\n\r\n#{get("/empty")}",
    "finish" => get("/finish"), "finished" => get("/finished"),
    "events" => "GET /talk HTTP/1.1\r\nhost: a\r\naccept: text/event-stream\r\n\r\n"
  }.freeze
  # Answers that differ, with the reason.
  DIFFERENCES = {
    "continue" => "the body is asked for before the call: without threads nobody can wait for it",
    "no host" => "Node's parser refuses it, in its own order of fields",
    "too large" => "the reason of the refusal is not in the body",
    "two ranges" => "the whole file is sent, as RFC 9110 allows"
  }.freeze
  # Those of uWebSockets.js.
  OLD = "the library does not speak HTTP/1.0"
  TARGETS = "the library knows only targets that begin with a slash"
  UWS_DIFFERENCES = {
    "1.0 parts" => OLD, "1.0 each" => OLD, "1.0 call" => OLD, "1.0 204" => OLD, "kept by 1.0" => OLD,
    "absolute form" => TARGETS, "asterisk" => TARGETS,
    "continue" => "the library asks for the body",
    "events" => "the head of a stream needs bytes behind it: a comment",
    "no host" => "the library refuses it",
    "pipelined" => "three answers in one: their fields are not compared one by one",
    "too large" => DIFFERENCES["too large"], "two ranges" => DIFFERENCES["two ranges"]
  }.freeze

  def self.servers
    @servers ||= begin
      started = [ServerProcess.new(APP), NodeProcess.new(APP)]
      Minitest.after_run { started.each(&:stop) }
      started
    end
  end

  ROWS.each do |name, bytes|
    define_method("test_#{name.gsub(/\W+/, "_")}") do
      mri, node = self.class.servers.map { |server| answer(server, bytes, name) }
      mri, node = PlainAnswer.of(mri), PlainAnswer.of(node) if NodeProcess::UWS
      differences.key?(name) ? refute_equal(mri, node) : assert_equal(mri, node)
    end
  end

  private

  def differences
    NodeProcess::UWS ? UWS_DIFFERENCES : DIFFERENCES
  end

  def answer(server, bytes, name)
    RawClient.open(server.url) do |client|
      client.write(bytes)
      client.await("hello") if name == "events"
      (name == "events" ? client.read_some : client.read_all).gsub(/^date: .*GMT\r$/, "date: now\r").gsub(server.port.to_s, "PORT")
    end
  end
end
