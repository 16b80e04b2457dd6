# frozen_string_literal: true

# A WebSocket that says what it hears:  bin/rondo examples/echo.ru
#
#   websocat ws://localhost:9292     or in the console of a browser, at http://localhost:9292/
#
#   socket = new WebSocket(location.origin.replace("http", "ws"))
#   socket.onmessage = event => console.log(event.data)
#   socket.send("hello")             // once it is open

# The handler has no state, so the module itself is enough.
module Echo
  def self.on_message(client, data)
    client.write(data)
  end
end

run lambda { |env|
  env["rack.upgrade"] = Echo if env["rack.upgrade?"] == :websocket
  [200, { "content-type" => "text/plain" }, ["a WebSocket lives here\n"]]
}
