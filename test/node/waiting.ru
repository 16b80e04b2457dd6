# backtick_javascript: true
# frozen_string_literal: true

# An application whose answers come when another request says so, and that notes what it was told afterwards. It runs
# on Node only.
# SPDX-License-Identifier: MIT

require "rack/multipart"

WAITING = []
NOTES = []
KEPT = []

# Notes its end.
class Noting
  def initialize(name)
    @name = name
  end

  def each
    yield "first"
    yield "second"
  end

  def close
    NOTES << "#{@name} closed"
  end
end

# A file.
class OnDisk
  attr_reader :to_path

  def initialize(path)
    @to_path = path
  end
end

# An upgraded connection that notes its end.
class Visitor
  def initialize(name)
    @name = name
  end

  def on_open(client)
    client.write("hello")
  end

  def on_message(client, data)
    word, name = data.split(" ", 2)
    case word
    when "subscribe" then client.write(client.subscribe(name).inspect)
    when "unsubscribe" then client.write(client.unsubscribe(name).inspect)
    when "wait" then later(nil)
    else client.write(data.bytesize.to_s)
    end
  end

  def on_close(client)
    NOTES << "#{@name} left with #{client.close_code}"
  end
end

def later(answer)
  resolve = nil
  promise = `new Promise((done) => { #{resolve} = done; })`
  WAITING << lambda {
    begin
      yield if block_given?
    rescue Rondo::ClientGone
      NOTES << "gone" # the others are served
    end
    resolve.call(answer)
  }
  promise
end

def failing
  refuse = nil
  promise = `new Promise((_, failed) => { #{refuse} = failed; })`
  WAITING << -> { refuse.call(RuntimeError.new("late")) }
  promise
end

def visited(env, answer)
  env["rack.upgrade"] = Visitor.new(env["QUERY_STRING"])
  answer
end

def note(env, name)
  env["rack.response_finished"] << ->(_, status, _, error) { NOTES << "#{name} finished #{status} #{error.class}" }
end

def go
  waiting = WAITING.dup
  WAITING.clear
  waiting.each { |one| one.call }
  [200, {}, [waiting.size.to_s]]
end

def streamed(env)
  name = env["QUERY_STRING"]
  note(env, name)
  [200, {}, lambda { |out|
    out.write("begin")
    later(nil) { out.write("end") && out.close }
  }]
end

run lambda { |env|
  name = env["QUERY_STRING"]
  case env["PATH_INFO"]
  when "/go" then go
  when "/notes" then [200, {}, [NOTES.join("\n")]]
  when "/waiting" then [200, {}, [WAITING.size.to_s]]
  when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
  when "/raise" then raise "it failed"
  when "/wait" then note(env, name) && later([200, {}, Noting.new(name)])
  when "/parts" then later([200, {}, [name]])
  when "/stream" then streamed(env)
  when "/called" then NOTES << "#{name} called" && [200, {}, []]
  when "/noted" then note(env, name) && [200, {}, Noting.new(name)]
  when "/keep" then KEPT << env["rack.input"] && [200, {}, ["kept"]]
  when "/keep-file"
    KEPT << Rack::Multipart.parse_multipart(env)["a"][:tempfile]
    [200, {}, [KEPT.last.read.bytesize.to_s]]
  when "/kept" then [200, {}, [KEPT.map { |one| one.closed? && `#{one}.bytes.length` }.join(" ")]]
  when "/file" then note(env, "file") && later([200, {}, OnDisk.new(name)])
  when "/later-raise" then note(env, name) && failing
  when "/later-visit" then note(env, name) && visited(env, later([200, {}, Noting.new(name)]))
  when "/visit" then note(env, name) && visited(env, [200, {}, Noting.new(name)])
  else [200, {}, ["fine"]]
  end
}
