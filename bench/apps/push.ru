# frozen_string_literal: true

# WebSockets by the interface that several servers share (`rack.upgrade`). The path chooses what a connection does.
# Greeted connections get a message when they are subscribed. The control connection orders messages that carry their
# numbers. Other paths get plain requests, as in hello.ru.
PADDING = Array.new(65_536)

# Sends back what comes.
module Echo
  def self.on_open(client)
    client.write("ready")
  end

  def self.on_message(client, data)
    client.write(data)
  end
end

# Gets the published messages.
module Subscriber
  def self.on_open(client)
    client.subscribe("all")
    client.write("ready")
  end
end

# Publishes "COUNT BYTES FIRST": COUNT messages of that size, numbered from FIRST.
module Control
  def self.on_open(client)
    client.write("ready")
  end

  def self.on_message(client, data)
    count, bytes, first = data.split.map(&:to_i)
    padding = PADDING[bytes] ||= "x" * (bytes - 10)
    count.times { |number| client.publish("all", (first + number).to_s.rjust(10, "0") + padding) }
  end
end

# A message of one goes to all.
module Chat
  def self.on_open(client)
    client.subscribe("chat")
    client.write("ready")
  end

  def self.on_message(client, data)
    client.publish("chat", data)
  end
end

# Has 1,000 patterns that match no published message, but only fail at the end. They are as long as the names of one
# client may be together (max_subscription_bytes).
module Patterns
  def self.on_open(client)
    taken = Array.new(1000) { |number| client.subscribe("*?*[#{"b" * 54}#{number}]", match: :redis) }
    client.write("ready") if taken.all?
  end
end

# Has no callbacks.
module Idle
end

# One object for each connection, with its callbacks.
class Opened
  def on_open(client); end
end

HANDLERS = { "/echo" => Echo, "/subscribe" => Subscriber, "/control" => Control, "/chat" => Chat,
             "/idle" => Idle, "/patterns" => Patterns }.freeze

run lambda { |env|
  if env["rack.upgrade?"] == :websocket
    env["rack.upgrade"] = HANDLERS[env["PATH_INFO"]] || Opened.new
    [0, {}, []]
  else
    [200, { "content-type" => "text/plain", "content-length" => "13" }, [+"Hello, World!"]]
  end
}
