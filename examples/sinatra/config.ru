# frozen_string_literal: true

# A wall of notes in Sinatra; what somebody pins up appears on every open page:
#
#   bin/rondo examples/sinatra/config.ru         needs `gem install sinatra`
#
# Sessions and protections are on: a WebSocket passes them like any other request.
# SPDX-License-Identifier: MIT

require "securerandom"
require "sinatra/base"

# A new page first gets the last notes.
Rondo::PubSub.history("wall", size: 20)

# An open page gets notes directly from the publisher.
class LiveWall
  def on_open(client)
    client.subscribe("wall", since: 0)
  end
end

# The pages.
class Wall < Sinatra::Base
  enable :sessions
  set :session_secret, ENV.fetch("SESSION_SECRET") { SecureRandom.hex(64) }
  set :protection, reaction: :deny # no forms from other sites
  set :views, __dir__

  get "/" do
    erb :wall
  end

  get "/live" do
    halt 426 unless env["rack.upgrade?"] == :websocket
    halt 403 unless request.get_header("HTTP_ORIGIN") == request.base_url # browsers let any page connect

    session[:visits] = session.fetch(:visits, 0) + 1 # its cookie is sent with the answer 101
    env["rack.upgrade"] = LiveWall.new
    200
  end

  post "/notes" do
    session[:nick] = params["nick"].to_s.scrub[0, 20]
    Rondo.publish("wall", { nick: session[:nick], text: params["text"].to_s.scrub[0, 200] })
    redirect to("/"), 303
  end
end

run Wall
