# backtick_javascript: true
# frozen_string_literal: true

# An application that does everything wrong. It runs on Node only.
# SPDX-License-Identifier: MIT

CLOSED = []
LATER = [201, {}, ["later"]]

# A body that fails on its way.
class Failing
  def each
    yield "first"
    raise "the body failed"
  end

  def close
    CLOSED << 1
  end
end

# Floods whoever says so.
class Talker
  def initialize(query)
    @query = query
    @role = "a client"
  end

  def on_open(client)
    return unless @query == "flood"

    @role = "an event stream"
    flood(client)
  end

  def on_message(client, data)
    case data.split.first
    when "raise" then raise "a callback failed"
    when "flood" then flood(client)
    when "wait" then `new Promise(() => {})`
    when "join" then join(client)
    else client.publish("all", data)
    end
  end

  def on_close(client)
    puts "#{@role} was closed with #{client.close_code}"
  end

  private

  def join(client)
    @role = "a subscriber"
    client.subscribe("all")
    client.write("joined")
  end

  def flood(client)
    most = 0
    accepted = true
    while accepted
      accepted = client.write("x" * 100_000)
      most = [most, client.pending].max
    end
    puts "#{@role} was closed with 1013, refused; most pending: #{most}"
  end
end

# Nobody can say what it is.
class Nameless
  def self.inspect
    raise "no name"
  end

  def on_message(_client, data)
    return `Promise.reject(#{RuntimeError.new("a promise failed")})` if data == "promise"

    raise "a callback failed"
  end

  def on_close(client)
    puts "somebody without a name was closed with #{client.close_code}"
  end
end

def deep(depth)
  deep(depth + 1) + 1
end

def plain(path)
  case path
  when "/raise" then raise "it failed"
  when "/no-method" then Object.new.nothing
  when "/throw" then throw :nowhere
  when "/stack" then deep(0)
  when "/nil" then nil
  when "/part" then [200, {}, [7]]
  when "/name" then [200, { "a b" => "c" }, []]
  when "/body" then [200, {}, Failing.new]
  when "/large" then [200, {}, ["0123456789abcdef" * 500_000]]
  when "/closed" then [200, {}, [CLOSED.size.to_s]]
  else [200, {}, ["fine"]]
  end
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/talk"
    env["rack.upgrade"] = Talker.new(env["QUERY_STRING"])
    [200, {}, ["plain"]]
  when "/nameless"
    env["rack.upgrade"] = Nameless.new
    [200, {}, []]
  when "/timer"
    `setTimeout(#{-> { raise "in a timer" }}, 1)`
    [200, {}, []]
  when "/split"
    env["rack.upgrade"] = Talker.new("")
    [200, { "x" => "a\r\nb: c" }, []]
  when "/hints"
    env["rack.early_hints"].call("link" => "<a\r\nb: c>; rel=preload")
    [200, {}, []]
  when "/size" then [200, {}, [env["rack.input"].read.bytesize.to_s]]
  when "/late" then `new Promise((_, refuse) => setTimeout(() => refuse(#{RuntimeError.new("later")}), 5))`
  when "/promise" then `new Promise((resolve) => setTimeout(() => resolve(#{LATER}), 5))`
  else plain(env["PATH_INFO"])
  end
}
