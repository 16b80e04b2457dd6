# frozen_string_literal: true

# Rails in one file; a form publishes, every open page shows it at once:
#
#   bin/rondo examples/rails_push.ru         needs `gem install rails`
#
# In an application of many files the feed lies in app/push/: see docs/PUSH.md, "With Rails".
# SPDX-License-Identifier: MIT

require "action_controller/railtie"

# Usually these lines are in config/application.rb and config/routes.rb.
class Board < Rails::Application
  config.root = __dir__
  config.load_defaults 7.2
  config.eager_load = false
  config.secret_key_base = ENV.fetch("SECRET_KEY_BASE") { SecureRandom.hex(64) }
  config.logger = Logger.new($stdout)

  routes.append do
    root "notes#index"
    resources :notes, only: :create
    get "live", to: "live#show"
  end
end
Board.initialize! # before the controllers, which get the routes' helpers

# An open page. Its callbacks run outside of Rails' executor. A callback that uses records would need to wrap that.
class NoteFeed
  def initialize(nick)
    @nick = nick
  end

  def on_open(client)
    client.subscribe("notes")
    client.write({ text: "Welcome, #{@nick}" })
  end
end

class LiveController < ActionController::Base # rubocop:disable Style/Documentation
  def show
    return head(:upgrade_required) unless request.env["rack.upgrade?"] == :websocket
    return head(:forbidden) unless valid_request_origin? # browsers let any page connect

    session[:nick] ||= "guest #{rand(1000)}" # its cookie goes with the answer 101
    request.env["rack.upgrade"] = NoteFeed.new(session[:nick])
    head :ok
  end
end

class NotesController < ActionController::Base # rubocop:disable Style/Documentation
  def index
    render inline: <<~HTML
      <!doctype html>
      <title>Notes</title>
      <%= form_with url: notes_path do |form| %>
        <%= form.text_field :text, maxlength: 200, autofocus: true, required: true %>
        <%= form.submit "Publish" %>
      <% end %>
      <ul></ul>
      <script>
        const socket = new WebSocket(location.origin.replace("http", "ws") + "<%= live_path %>")
        socket.onmessage = event => {
          const line = document.createElement("li")
          line.textContent = JSON.parse(event.data).text
          document.querySelector("ul").prepend(line)
        }
        document.querySelector("form").onsubmit = event => { // without leaving the page
          event.preventDefault()
          fetch(event.target.action, { method: "POST", body: new FormData(event.target) })
          event.target.reset()
        }
      </script>
    HTML
  end

  def create
    Rondo.publish("notes", { text: params.require(:text).to_s[0, 200] })
    head :no_content
  end
end

run Board
