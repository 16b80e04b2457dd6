# frozen_string_literal: true

# The server for WebSocket clients of other projects: it sends everything back, except for a few words.
# SPDX-License-Identifier: MIT

module Words
  def self.on_message(client, data)
    case data
    when /\Aclose (\d+) ?(.*)\z/ then client.close(Regexp.last_match(1).to_i, Regexp.last_match(2))
    when "raise" then raise "out of a callback"
    else client.write(data)
    end
  end

  def self.on_shutdown(client)
    client.write("last words")
  end
end

run lambda { |env|
  next [200, { "content-type" => "text/html" }, ["<p>no WebSocket</p>"]] unless env["rack.upgrade?"] == :websocket

  path = env["PATH_INFO"]
  next [403, {}, ["no\n"]] if path == "/refused"

  env["rack.upgrade"] = Words
  offered = env.fetch("HTTP_SEC_WEBSOCKET_PROTOCOL", "").split(/\s*,\s*/)
  taken = path == "/unasked" ? "other" : (offered & %w[chat]).first
  [101, taken ? { "sec-websocket-protocol" => taken } : {}, []]
}
