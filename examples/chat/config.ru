# frozen_string_literal: true

# A chat with rooms, nicknames, and what was said while you were away:
#
#   bin/rondo examples/chat/config.ru            with -w 4, too: the workers share the channels
#
# One handler serves WebSockets and, where something between does not let them through, event streams.
# SPDX-License-Identifier: MIT

require "json"
require "securerandom"

# The last messages of each room, for people who come, reload or come back.
Rondo::PubSub.history("chat:*", match: :redis, size: 100, ttl: 24 * 3600)

# One person in one room.
class Chat
  PAGE = File.read(File.join(__dir__, "index.html"))

  def initialize(room)
    @channel = "chat:#{room}"
  end

  def on_open(client)
    client.subscribe(@channel, since: 0)
  end

  def on_message(client, data)
    client.close(1008, "that is no message") unless say(data)
  end

  def say(data)
    nick, text = JSON.parse(data).values_at("nick", "text")
    return false unless [nick, text].all? { |part| part.is_a?(String) && part.valid_encoding? } && text.match?(/\S/)

    message = { id: SecureRandom.uuid, nick: nick[0, 20], text: text[0, 1000], at: Time.now.to_i }
    Rondo.publish(@channel, message)
  rescue JSON::ParserError, NoMethodError, TypeError, ArgumentError
    false
  end
end

run lambda { |env|
  chat = Chat.new(env["QUERY_STRING"][/\broom=([\w-]{1,40})/, 1] || "lobby")
  if env["rack.upgrade?"]
    env["rack.upgrade"] = chat
    [200, {}, []]
  elsif env["REQUEST_METHOD"] == "POST" # what somebody with an event stream says
    [chat.say(env["rack.input"].read(8192)) ? 204 : 400, {}, []]
  else
    [200, { "content-type" => "text/html; charset=utf-8" }, [Chat::PAGE]]
  end
}
