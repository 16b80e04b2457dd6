# frozen_string_literal: true

# The application of the tests of Redis, on MRI and on Node. OWN_REDIS makes the engine here, with the class.
# SPDX-License-Identifier: MIT

if ENV["OWN_REDIS"]
  terms = { queue: ENV.fetch("OWN_QUEUE", "10000").to_i }
  terms = terms.merge(reply_max: ENV["OWN_REPLY_MAX"].to_i, timeout: ENV.fetch("OWN_TIMEOUT", "60").to_i) if ENV["OWN_REPLY_MAX"]
  terms = terms.merge(ssl_params: { ca_file: ENV["OWN_CA"] }) if ENV["OWN_CA"]
  Rondo::PubSub.default = Rondo::PubSub::Redis.new(ENV["OWN_REDIS"], **terms)
end
Rondo::PubSub.history("kept", size: 10)

# The path is the channel; one with a star is a pattern.
class Listener
  def initialize(channel)
    @channel = channel
  end

  def on_open(client)
    client.subscribe(@channel, match: @channel.include?("*") ? :redis : nil, since: @channel == "kept" ? 0 : nil)
    client.write("subscribed")
    client.publish(@channel, "own") if @channel.start_with?("own")
  end

  def on_message(client, data)
    client.publish(*data.split("=", 2))
  end
end

replies = []

run lambda { |env|
  path = env["PATH_INFO"].delete_prefix("/")
  query = env["QUERY_STRING"]
  env["rack.upgrade"] = Listener.new(path) if env["rack.upgrade?"]
  answer =
    case path
    when "say" then Rondo.publish(*query.split("=", 2)).to_s
    when "bytes" then Rondo.publish(query, [255, 0, 13, 10].pack("C*")).to_s
    when "default" then Rondo::PubSub.default.inspect
    when "cmd" then Rondo::PubSub.default.cmd(*query.split("+")) { |reply| replies = [*replies, reply.inspect] }.to_s
    when "replies" then replies.join(" ")
    else "hello"
    end
  [200, { "content-type" => "text/plain" }, [answer]]
}
