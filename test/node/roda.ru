# frozen_string_literal: true

# A Roda application, for both engines.
# SPDX-License-Identifier: MIT

require "roda"

# Routes, parameters, JSON, a form, a redirect and a WebSocket.
class Routes < Roda
  plugin :json

  # Says it back.
  module Echo
    def self.on_message(client, data)
      client.write(data)
    end
  end

  def upload(params)
    file = params["file"]
    bytes = file[:tempfile].read
    { "text" => params["text"], "deep" => params["deep"], "filename" => file[:filename], "type" => file[:type],
      "name" => file[:name], "head" => file[:head], "size" => bytes.bytesize, "bytes" => bytes.unpack("C*") }
  end

  route do |r|
    r.root { "Hello from Roda" }
    r.get("json") { { "a" => [1, nil, "ü"] } }
    r.get("to") { r.redirect("/hello/you") }
    r.post("form") { "#{r.params["name"]} #{r.params["list"].inspect}" }
    r.post("upload") { upload(r.params) }
    r.is("gone", method: "DELETE") { response.status = 204 }
    r.get("live") do
      r.env["rack.upgrade"] = Echo
      ""
    end
    r.on "hello", String do |name|
      r.get(Integer) { |count| ([name] * count).join(" ") }
      r.is { "Hello #{name} #{r.params["q"]}" }
    end
  end
end

run Routes.freeze.app
