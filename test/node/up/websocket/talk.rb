# frozen_string_literal: true

# SPDX-License-Identifier: MIT

module Callbacks
  class << self
    def on_open(client)
      puts "opened #{client.object_id}"
      client.subscribe(:everyone)
    end

    def on_message(client, data)
      client.write data
      client.publish(:everyone, "all: #{data} by #{Process.pid}")
      puts "pending" if client.pending != 0
    end

    def on_drained(_client)
      puts "drained"
    end

    def on_shutdown(client)
      client.write "The server ends."
    end

    def on_close(client)
      puts "closed #{client.object_id}"
    end
  end
end

class Talk
  def self.call(env)
    if env["rack.upgrade?"] == :websocket
      env["rack.upgrade"] = Callbacks
      return [0, {}, []]
    end
    body = %(
      <script>new WebSocket("ws://" + window.location.host)</script>
      <div>#{env.to_s.include?("REQUEST_METHOD")}<div>
    )
    [200, { "Content-Type" => "text/html" }, [body]]
  end
end
