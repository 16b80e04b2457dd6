# frozen_string_literal: true

# One of several machines that share a Redis. All of them have this file and config/rondo.rb; HAProxy is in front.
#
#   bundle exec rondo                      with the gems rondo and redis-client, and the variables of config/rondo.rb
#
#   /events?channel=SIGNED    an event stream, or a WebSocket, of the channel in a signed name
#   /sign                     the signed name of the channel "news". A real application asks first who wants it
#   /room                     a WebSocket: the first message is a name, and it joins the lobby
#   /lobby                    who is in the lobby, at all machines

# What a client missed comes from Redis, also at another machine. The rules are the same at all machines.
Rondo::PubSub.history("news", size: 1000, ttl: 3600)

# Joins the lobby under the name that a client says. Names are not checked here.
module Lobby
  def self.on_message(client, name)
    client.write(client.join("lobby", id: name) ? "welcome" : "the lobby is full")
  rescue ArgumentError => e
    client.write(e.message)
  end
end

map("/events") { run Rondo::Signed::Subscriptions.new }

text = { "content-type" => "text/plain" }
run lambda { |env|
  case env["PATH_INFO"]
  when "/sign" then [200, text, [Rondo::Signed.channel("news", expires_in: 3600)]]
  when "/lobby" then [200, text, [Rondo::Presence.list("lobby").map(&:first).sort.join("\n")]]
  when "/room"
    next [426, { "upgrade" => "websocket", "sec-websocket-version" => "13" }, []] if env["rack.upgrade?"] != :websocket

    env["rack.upgrade"] = Lobby
    [200, {}, []]
  else [200, text, ["up\n"]]
  end
}
