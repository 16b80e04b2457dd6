# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# The application of the conformance tests. It answers as JSON what it received, and misbehaves on request. Bytes above
# 0x7f are written as the Unicode characters with the same number.

require "digest/sha2" # not on the first request: threads would meet a class half made
require "json"

# A body that counts how often it was closed. It may fail or lie on the way.
class TestBody
  def initialize(parts, counts, failure: nil)
    @parts = parts
    @counts = counts
    @failure = failure
  end

  def each(&block)
    @parts.each(&block)
    raise @failure if @failure
  end

  def close
    @counts[:closed] += 1
  end
end

# An endless body: the client has to leave, or to stop reading.
class EndlessBody < TestBody
  PART = "x" * 16_384

  def each
    loop do
      @counts[:parts] += 1
      yield PART
    end
  end
end

class EchoApp
  SPECIAL = {
    "/204" => [204, {}, ["not to be sent"]],
    "/304" => [304, {}, ["not to be sent"]],
    "/204-length" => [204, { "content-length" => "5" }, []],
    "/crlf-value" => [200, { "x-bad" => "a\r\nx-injected: 1" }, ["body"]],
    "/cr-value" => [200, { "x-bad" => "a\rb" }, ["body"]],
    "/lf-value" => [200, { "x-bad" => "a\nx-injected: 1" }, ["body"]],
    "/nul-value" => [200, { "x-bad" => "a\0b" }, ["body"]],
    "/crlf-name" => [200, { "x-bad\r\nx-injected" => "a" }, ["body"]],
    "/lf-name" => [200, { "x-bad\nx-injected" => "a" }, ["body"]],
    "/nul-name" => [200, { "x-bad\0" => "a" }, ["body"]],
    "/colon-name" => [200, { "x-bad: 1" => "a" }, ["body"]],
    "/empty-name" => [200, { "" => "a" }, ["body"]],
    "/crlf-array" => [200, { "x-bad" => ["fine", "a\r\nx-injected: 1"] }, ["body"]],
    "/lf-array" => [200, { "x-bad" => ["fine", "a\nb"] }, ["body"]],
    "/array" => [200, { "set-cookie" => ["a=1", "b=2"] }, ["body"]],
    "/upper-case" => [200, { "X-Upper" => "1", "Content-Type" => "text/plain" }, ["body"]],
    "/status-0" => [0, {}, ["body"]],
    "/status-99" => [99, {}, ["body"]],
    "/status-1000" => [1000, {}, ["body"]],
    "/status-word" => ["200 OK\r\nx-injected: 1", {}, ["body"]],
    "/status-418" => [418, {}, ["short and stout"]],
    "/status-599" => [599, {}, ["body"]],
    "/short-length" => [200, { "content-length" => "4" }, ["four", "and more"]],
    "/long-length" => [200, { "content-length" => "40" }, ["four"]],
    "/bad-length" => [200, { "content-length" => "four" }, ["four"]],
    "/both" => [200, { "content-length" => "4", "transfer-encoding" => "chunked" }, ["four"]],
    "/chunked-by-app" => [200, { "transfer-encoding" => "chunked" }, ["4\r\nfour\r\n", "0\r\n\r\n"]],
    "/connection-close" => [200, { "connection" => "close" }, ["body"]],
    "/own-date" => [200, { "date" => "Thu, 01 Jan 1970 00:00:00 GMT" }, ["body"]],
    "/empty" => [200, {}, []],
    "/rack-header" => [200, { "rack.private" => "1", "x-seen" => "1" }, ["body"]]
  }.freeze

  def initialize
    @requests = 0
    @counts = Hash.new(0)
    @mutex = Mutex.new
  end

  def call(env)
    path = env["PATH_INFO"]
    return counters if path == "/__counters"
    number = @mutex.synchronize { @requests += 1 }
    status, headers, body = answer(env, path)
    [status, headers.merge("x-request-number" => number.to_s), body]
  end

  private

  def counters
    @mutex.synchronize { json(200, @counts.merge("requests" => @requests)) }
  end

  def answer(env, path)
    if path.start_with?("/count")
      (env["rack.response_finished"] || []) << ->(*) { @counts[:finished] += 1 }
      path = path.delete_prefix("/count")
    end
    return special(path) if SPECIAL.key?(path)
    case path
    when "/raise" then raise "the application failed"
    when "/body-raises" then body(["first"], failure: "the body failed")
    when "/body-raises-early" then body([], failure: "the body failed")
    when "/body-raises-length" then body(["first"], { "content-length" => "50" }, failure: "the body failed")
    when "/parts" then body(%w[one two three])
    when "/endless" then [200, {}, EndlessBody.new([], @counts)]
    when "/large" then body(["y" * env["QUERY_STRING"].to_i])
    when "/hints" then hints(env, "</style.css>; rel=preload")
    when "/hints-crlf" then hints(env, "</a>\r\nx-injected: 1")
    when "/hints-array" then hints(env, ["</a>; rel=preload", "</b>\r\nx-injected: 1"])
    when "/unread" then json(200, "unread" => true)
    when "/rescue-input" then rescue_input(env)
    else echo(env)
    end
  end

  def special(path)
    status, headers, parts = SPECIAL[path]
    [status, headers.dup, TestBody.new(parts, @counts)]
  end

  def body(parts, headers = {}, failure: nil)
    [200, headers, TestBody.new(parts, @counts, failure: failure)]
  end

  def hints(env, link)
    return json(200, "hints" => "not offered") unless env["rack.early_hints"]
    env["rack.early_hints"].call("link" => link)
    json(200, "hints" => "sent")
  rescue StandardError => e
    json(200, "hints" => e.class.name)
  end

  def rescue_input(env)
    env["rack.input"].read
    @counts[:whole_input] += 1
    json(200, "input" => "whole")
  rescue StandardError => e
    @counts[:raised_input] += 1
    json(200, "input" => e.class.name)
  end

  def echo(env)
    input = env["rack.input"]&.read.to_s
    seen = env.select { |key, value| value.is_a?(String) && key.match?(/\A[^a-z]*\z/n) }
    seen = seen.to_h { |key, value| [text(key), text(value)] }
    seen["scheme"] = env["rack.url_scheme"]
    seen["body_size"] = input.bytesize
    seen["body_digest"] = Digest::SHA256.hexdigest(input)
    seen["body"] = text(input) if input.bytesize <= 1024
    json(env["REQUEST_METHOD"] == "CONNECT" ? 403 : 200, seen)
  end

  def text(bytes)
    bytes.dup.force_encoding(Encoding::ISO_8859_1).encode(Encoding::UTF_8)
  end

  def json(status, value)
    body = JSON.generate(value)
    [status, { "content-type" => "application/json", "content-length" => body.bytesize.to_s }, [body]]
  end
end

run EchoApp.new
