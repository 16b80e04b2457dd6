# frozen_string_literal: true

# The application of the recipes:  bin/rondo examples/recipes/app/config.ru
#
#   curl http://localhost:9292/up                    answered once the application is loaded: for health checks
#   curl http://localhost:9292/client                who the server believes the client is
#   curl -N -H "Accept: text/event-stream" http://localhost:9292/news
#   curl -d "hello" http://localhost:9292/news       to all open streams, with Redis also those of other servers
#
# http://localhost:9292/echo is a WebSocket that says what it hears.

# Sends on to the client what is published to the channel.
module News
  def self.on_open(client)
    client.subscribe("news")
  end
end

# Says what it hears.
module Echo
  def self.on_message(client, data)
    client.write(data)
  end
end

release = ENV.fetch("RELEASE", "none")

run lambda { |env|
  text = { "content-type" => "text/plain" }
  case [env["PATH_INFO"], env["rack.upgrade?"], env["REQUEST_METHOD"]]
  in ["/news", :sse, _]
    env["rack.upgrade"] = News
    [200, {}, []]
  in ["/echo", :websocket, _]
    env["rack.upgrade"] = Echo
    [200, {}, []]
  in ["/news", _, "POST"]
    Rondo.publish("news", env["rack.input"].read)
    [204, {}, []]
  in ["/up", _, _] then [200, text, ["up\n"]]
  in ["/client", _, _]
    request = Rack::Request.new(env)
    [200, text, ["#{request.scheme} #{request.host} #{env["REMOTE_ADDR"]}\n"]]
  in ["/", _, _] then [200, text, ["release #{release}\n"]]
  else [404, text, ["try /up\n"]]
  end
}
