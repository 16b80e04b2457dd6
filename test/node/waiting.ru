# backtick_javascript: true
# frozen_string_literal: true

# An application whose answers come when another request says so, and that notes what it was told afterwards. It runs
# on Node only.
# SPDX-License-Identifier: MIT

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

# An upgraded connection that notes its end.
class Visitor
  def initialize(name)
    @name = name
  end

  def on_open(client)
    client.write("hello")
  end

  def on_message(client, data)
    client.write(data)
  end

  def on_close(client)
    NOTES << "#{@name} left with #{client.close_code}"
  end
end

def later(answer)
  resolve = nil
  promise = `new Promise((done) => { #{resolve} = done; })`
  WAITING << -> { resolve.call(answer) }
  promise
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
    WAITING << -> { out.write("end") && out.close }
    later(nil)
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
  when "/noted" then note(env, name) && [200, {}, Noting.new(name)]
  when "/keep" then KEPT << env && [200, {}, ["kept"]]
  when "/kept" then [200, {}, [KEPT.map { |one| one["rack.input"].closed? && `#{one["rack.input"]}.bytes.length` }.join(" ")]]
  when "/visit"
    env["rack.upgrade"] = Visitor.new(name)
    note(env, name)
    [200, {}, Noting.new(name)]
  else [200, {}, ["fine"]]
  end
}
