# frozen_string_literal: true

# Sends everything back.
# SPDX-License-Identifier: MIT

module Echo
  def self.on_message(client, data)
    client.write(data)
  end
end

run lambda { |env|
  env["rack.upgrade"] = Echo if env["rack.upgrade?"] == :websocket
  [200, { "content-type" => "text/plain" }, ["no WebSocket"]]
}
