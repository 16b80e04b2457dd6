# frozen_string_literal: true

# An application whose requests publish, and answer what the engine has answered. Whoever asks for an event stream gets
# the channels of the query.
# SPDX-License-Identifier: MIT

module Confirming
  # `how`: SECONDS, or block; the answer of the request is what came.
  APP = <<~'RUBY'
    require "uri"
    require "timeout"
    Rondo::PubSub.history("kept:*", match: :redis, size: 2000)
    class Feed
      def initialize(names) = @names = names
      def on_open(client) = @names.each { |name| client.subscribe(name) }
    end
    run(lambda do |env|
      if env["rack.upgrade?"]
        env["rack.upgrade"] = Feed.new(env["QUERY_STRING"].split(","))
        next [200, {}, []]
      end
      channel, message, how = env["QUERY_STRING"].split(",")
      message = URI.decode_www_form_component(message)
      answer =
        if how == "block"
          heard = Queue.new
          queued = Rondo.publish(channel, message, confirm: 60) { |result| heard << result }
          "#{queued} #{Timeout.timeout(60) { heard.pop }}"
        else
          Rondo.publish(channel, message, confirm: how.to_f).to_s
        end
      [200, { "content-type" => "text/plain" }, [answer]]
    rescue Rondo::Error, ArgumentError => e
      [200, {}, ["#{e.class}: #{e.message}"]]
    end)
  RUBY

  # @return [String] what the engine has answered
  def ask(server, channel, message, how = "60")
    get(server, "/?#{channel},#{message},#{how}").body
  end
end
