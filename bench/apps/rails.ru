# frozen_string_literal: true

# A Rails application in one file, for bench/rails.rb. RONDO_STOCK: Action Cable and Live are Rails' own on Rondo, too.
# ANYCABLE_SECRET: AnyCable has the WebSockets.
# SPDX-License-Identifier: MIT

require "rails"
require "action_controller/railtie"
require "action_cable/engine"
require "anycable-rails-core" if ENV.key?("ANYCABLE_SECRET")

class BenchRails < Rails::Application
  config.load_defaults 7.0
  config.eager_load = true
  config.secret_key_base = "a" * 64
  config.logger = Logger.new(nil)
  config.action_cable.disable_request_forgery_protection = true
  config.action_cable.cable = { "adapter" => ENV.key?("ANYCABLE_SECRET") ? "any_cable" : "async" }
  config.rondo.action_cable = config.rondo.live = false if ENV.key?("RONDO_STOCK")
  routes.append do
    get "/live", to: "live#words"
    get "/plain", to: "plain#page"
  end
end

class CrowdChannel < ActionCable::Channel::Base
  def subscribed = stream_from("crowd")

  def shout(data)
    data["times"].times { ActionCable.server.broadcast("crowd", { text: "x" * data["bytes"] }) }
  end
end

class PlainController < ActionController::Base
  def page = render(plain: "Hello, World!")
end

class LiveController < ActionController::Base
  include ActionController::Live

  def words
    response.stream.write("begun")
    sleep 600
  ensure
    response.stream.close
  end
end

BenchRails.initialize!
run BenchRails
