# frozen_string_literal: true

# The application of the tests that compare both engines: each path is one thing that an application can answer.
# SPDX-License-Identifier: MIT

require "json"

# A body that is enumerated, and says when it was closed.
class Parts
  def initialize(parts, failure: nil)
    @parts = parts
    @failure = failure
  end

  def each(&block)
    @parts.each(&block)
    raise @failure if @failure
  end

  def close
    CLOSED << @parts.size
  end
end

# What one request leaves for another one to see.
CLOSED = []
FINISHED = []

# Says what it is asked to say.
class Talker
  def on_open(client)
    client.subscribe("room")
    client.write("hello")
  end

  def on_message(client, data)
    word, rest = data.split(" ", 2)
    case word
    when "say" then client.publish("room", rest)
    when "json" then client.write({ "a" => [1, nil, "ü"] })
    when "bytes" then client.write([0, 255, 10].pack("C*"))
    when "close" then client.close(4001, rest.to_s)
    when "raise" then raise "a callback failed"
    when "state" then client.write([client.open?, client.protocol.to_s, client.env["PATH_INFO"], client.pubsub?].inspect)
    when "pattern" then client.subscribe(rest, match: :redis) { |channel, message| client.write("#{channel}=#{message}") }
    when "to" then client.publish(*rest.split(" ", 2))
    when "leave" then client.write(client.unsubscribe("room").to_s)
    when "event" then client.event("a\nb", event: "tick", id: 7, retry: 1000)
    when "next" then client.handler = Echo
    when "drain" then client.handler = Drained
    when "since" then since(client, rest)
    when "env" then client.write(client.env.keys.grep(/[a-z.]/).grep_v(/hijack|finished/).sort.inspect)
    when "mistakes" then client.write(mistakes(client).inspect)
    else client.write(data)
    end
  end

  def on_close(client)
    CLOSED << client.close_code
  end

  private

  # Three messages, of which the history has two.
  def since(client, channel)
    Rondo::PubSub.history(channel, size: 2)
    %w[one two three].each { |message| client.publish(channel, message) }
    client.subscribe(channel, since: 0)
    client.publish(channel, "four")
  end

  def mistakes(client)
    [-> { client.write(1) }, -> { client.publish("", "x") }, -> { client.publish("a" * 1025, "x") },
     -> { client.publish(1, "x") }, -> { client.subscribe("a", match: :glob) }, -> { client.subscribe("a", as: :json) },
     -> { client.event("x", event: "a\nb") }, -> { client.event("x", retry: -1) }].map do |mistake|
      mistake.call
    rescue ArgumentError, TypeError => e
      e.class.name
    end
  end
end

# Says once that everything has been sent.
module Drained
  def self.on_open(client)
    client.write("one")
  end

  def self.on_drained(client)
    client.env["drained"] ||= client.write("drained")
  end
end

# The handler that `next` changes to.
module Echo
  def self.on_open(client)
    client.write("echo")
  end

  def self.on_message(client, data)
    client.write("echo #{data}")
  end
end

# One method for each kind of answer.
class Answers
  TEXT = { "content-type" => "text/plain" }.freeze
  FIXED = {
    "/empty" => [200, {}, []],
    "/parts" => [200, {}, %w[a bc d]],
    "/array" => [200, { "set-cookie" => %w[a=1 b=2], "X-Upper" => "1" }, ["body"]],
    "/204" => [204, { "x-a" => "1" }, ["not sent"]],
    "/304" => [304, { "etag" => '"a"' }, ["not sent"]],
    "/418" => [418, {}, ["short and stout"]],
    "/date" => [200, { "date" => "Thu, 01 Jan 1970 00:00:00 GMT" }, ["body"]],
    "/close" => [200, { "connection" => "close" }, ["body"]],
    "/rack" => [200, { "rack.private" => "1" }, ["body"]],
    "/text" => [200, { "x-text" => "grün" }, ["grün, 猫, 🐈"]],
    "/coding" => [200, { "transfer-encoding" => "chunked" }, ["four"]],
    "/short" => [200, { "content-length" => "4" }, ["four and more"]],
    "/long" => [200, { "content-length" => "40" }, ["four"]],
    "/bad-length" => [200, { "content-length" => "four" }, ["four"]],
    "/crlf" => [200, { "x-bad" => "a\r\nx-injected: 1" }, ["body"]],
    "/name" => [200, { "x bad" => "a" }, ["body"]],
    "/status" => [99, {}, ["body"]],
    "/nil" => [200, {}, nil],
    "/nothing" => "nothing"
  }.freeze

  def call(env)
    path = env["PATH_INFO"]
    answer = FIXED[path]
    return answer.is_a?(Array) ? [answer[0], answer[1].dup, answer[2]] : answer if answer
    return upgrade(env) if path == "/talk"

    made(path, env)
  end

  private

  def upgrade(env)
    env["rack.upgrade"] = Talker.new
    [200, { "set-cookie" => "talk=1" }, []]
  end

  def made(path, env)
    case path
    when "/raise" then raise "the application failed"
    when "/each" then [200, TEXT.dup, Parts.new(%w[one two three])]
    when "/each-length" then [200, { "content-length" => "6" }, Parts.new(%w[one two])]
    when "/each-raises" then [200, {}, Parts.new(%w[one], failure: "the body failed")]
    when "/call" then [200, TEXT.dup, stream]
    when "/file" then [200, TEXT.dup, File.open(File.join(__dir__, "answers.ru"))]
    when "/closed" then [200, {}, [CLOSED.inspect]]
    when "/finish" then finish(env)
    when "/finished" then [200, {}, [FINISHED.inspect]]
    else seen(path, env)
    end
  end

  def stream
    lambda do |out|
      out << "one"
      out.write("two")
      out.close
    end
  end

  def finish(env)
    env["rack.response_finished"] << ->(_env, status, _headers, error) { FINISHED << [1, status, error] }
    env["rack.response_finished"] << ->(*arguments) { FINISHED << arguments.size }
    [201, {}, ["finish"]]
  end

  def seen(path, env)
    input = env["rack.input"]
    case path
    when "/lines" then [200, {}, [input.each.to_a.inspect]]
    when "/read" then [200, {}, [[input.read(3), input.gets, input.eof?, input.read(100), input.read(1), input.read].inspect]]
    when "/rewind" then [200, {}, [[input.read(2), input.rewind, input.read, input.size].inspect]]
    when "/echo" then [200, { "content-type" => "application/octet-stream" }, [input.read]]
    when "/json" then [200, {}, [JSON.generate(JSON.parse(input.read))]]
    else [200, TEXT.dup, [env.reject { |key, _| key.start_with?("rack.hijack") }.sort_by(&:first).inspect]]
    end
  end
end

map "/below" do
  run ->(env) { [200, {}, [env.values_at("SCRIPT_NAME", "PATH_INFO").inspect]] }
end

map "/" do
  run Answers.new
end
