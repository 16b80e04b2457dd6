# frozen_string_literal: true

# A Sinatra application of the classic style: routes at the top of the file.
# SPDX-License-Identifier: MIT

require "sinatra"

set :host_authorization, permitted_hosts: []
enable :logging

before { headers "x-before" => "yes" }

get("/hello/:name") { "Hello, #{params["name"]}!" }
post("/echo") { request.body.tap(&:rewind).read } # the form has been read already
put("/numbers/:number") { |number| (number.to_i + 1).to_s }
delete("/numbers/:number") { halt 204 }
get("/around") { redirect "/hello/around", 307 }

run Sinatra::Application
