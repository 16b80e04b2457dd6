# frozen_string_literal: true

# A Sinatra application of the classic kinds: forms, sessions, redirects, streaming, uploads.
# SPDX-License-Identifier: MIT

require "digest/sha2"
require "sinatra/base"

class Guestbook < Sinatra::Base
  enable :sessions
  set :session_secret, "a secret that is long enough for the sessions of a test" * 2
  set :public_folder, File.join(__dir__, "public")
  set :show_exceptions, false
  set :host_authorization, permitted_hosts: []

  ENTRIES = []

  get "/" do
    erb <<~HTML
      <h1>Guestbook</h1>
      <% ENTRIES.each do |entry| %><p class="entry"><%= Rack::Utils.escape_html(entry) %></p><% end %>
      <form action="/entries" method="post">
        <input type="text" name="text"><button type="submit">Sign</button>
      </form>
    HTML
  end

  post "/entries" do
    ENTRIES << params.fetch("text")
    session[:signed] = session.fetch(:signed, 0) + 1
    redirect to("/")
  end

  get("/signed") { "signed #{session.fetch(:signed, 0)} times" }

  get "/greet/:name" do |name|
    response.set_cookie("greeted", value: name, path: "/")
    response.set_cookie("twice", value: "yes", path: "/")
    content_type :json
    "{\"hello\":\"#{name}\"}"
  end

  get("/greeted") { "#{request.cookies["greeted"]} #{request.cookies["twice"]}" }

  get "/forget" do
    response.delete_cookie("greeted", path: "/")
    status 204
  end

  get "/stream" do
    content_type "text/plain"
    stream do |out|
      gate = File.open(ENV.fetch("GATE"), "r")
      %w[first second].each do |line|
        out << "#{line}\n"
        gate.readchar
      end
      out << "last\n"
    ensure
      gate&.close
    end
  end

  post "/upload" do
    file = params.fetch("file")
    digest = Digest::SHA256.file(file[:tempfile].path).hexdigest
    "#{params["title"]} #{file[:filename]} #{file[:tempfile].size} #{digest}"
  end

  get("/url") { url("/somewhere") }
  get("/fails") { raise "on purpose" }
  get("/halts") { halt 418, { "x-pot" => "tea" }, "short and stout" }
  get("/download") { send_file __FILE__, filename: "config.ru", type: "text/plain" }
  error { "an error: #{env["sinatra.error"].message}" }
  not_found { "no such page" }
end

use Rack::Lint
run Guestbook
