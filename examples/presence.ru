# frozen_string_literal: true

# Who is here: a WebSocket says its name, and the page names all who are there, over workers too (-w 2). In the console
# of a browser:
#
#   socket = new WebSocket("ws://localhost:9292/")
#   socket.onmessage = ({ data }) => console.log(data)
#   socket.send("ada")
#
# SPDX-License-Identifier: MIT

require "rondo"

Rondo::Presence.on_join("lobby") { |id| Rondo.publish("lobby", "#{id} came", false) }
Rondo::Presence.on_leave("lobby") { |id| Rondo.publish("lobby", "#{id} left", false) }

# A client, whose only message is its name.
class Visitor
  def on_open(client)
    client.subscribe("lobby")
  end

  def on_message(client, name)
    client.join("lobby", id: name)
  rescue ArgumentError => e
    client.write(e.message)
  end
end

run lambda { |env|
  env["rack.upgrade"] = Visitor.new if env["rack.upgrade?"] == :websocket
  names = Rondo::Presence.list("lobby").map(&:first)
  [200, { "content-type" => "text/plain" }, [names.sort.join("\n"), "\n"]]
}
