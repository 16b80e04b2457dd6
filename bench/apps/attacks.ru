# frozen_string_literal: true

# The application for the attacks of bench/attacks.rb: it reads bodies, sends long answers, and lets its WebSocket
# clients subscribe to names of their choice. "/" is for the bystander, as in hello.ru.

# Runs the command in the first word of a message.
module Words
  def self.on_message(client, text)
    verb, *names = text.split
    case verb
    when "names" then names.each { |name| client.subscribe(name) }
    when "patterns" then client.close unless names.all? { |name| client.subscribe(name, match: :redis) }
    when "publish" then client.publish(names.first, "x")
    end
    client.write("done")
  end
end

PART = ("x" * 16_384).freeze
LONG = Enumerator.new { |parts| 64.times { parts << PART } }
WHOLE = ("x" * (1 << 20)).freeze
ANSWER = ("0123456789" * 1000).freeze
BIG = ("0123456789" * 300_000).freeze

run lambda { |env|
  if env["rack.upgrade?"] == :websocket
    env["rack.upgrade"] = Words
    next [0, {}, []]
  end
  case env["PATH_INFO"]
  when "/upload", "/size" then [200, { "content-type" => "text/plain" }, [env["rack.input"].read.bytesize.to_s]]
  when "/parts" then [200, { "content-type" => "text/plain" }, LONG]
  when "/whole" then [200, { "content-type" => "text/plain" }, [WHOLE]]
  when "/answer" then [200, { "content-type" => "text/plain" }, [ANSWER]]
  when "/big" then [200, { "content-type" => "text/plain" }, [BIG]]
  else [200, { "content-type" => "text/plain", "content-length" => "13" }, [+"Hello, World!"]]
  end
}
