# frozen_string_literal: true

# A Rails application in one file; the adapter of its Action Cable is away at boot, or with FOLDER `adapter: rondo`, and
# then the file HEARD gets what is broadcast.
# SPDX-License-Identifier: MIT

$LOAD_PATH.unshift(__dir__)
require "rails"
require "action_controller/railtie"
require "action_cable/engine"

class DownApp < Rails::Application
  config.load_defaults 7.0
  config.eager_load = true
  config.secret_key_base = "a" * 64
  config.logger = Logger.new($stdout)
  config.action_cable.disable_request_forgery_protection = true
  config.action_cable.cable = ENV.key?("FOLDER") ? { "adapter" => "rondo", "socket_folder" => ENV["FOLDER"] } : { "adapter" => "down" }
end

class RoomsChannel < ActionCable::Channel::Base
  def subscribed = stream_from("room")
  def say(data) = ActionCable.server.broadcast("room", data["text"])
end

DownApp.initialize!
if ENV.key?("HEARD")
  require "action_cable/subscription_adapter/rondo"
  Rondo.subscribe(ActionCable::SubscriptionAdapter::Rondo.channel("room")) { |_, text| File.write(ENV["HEARD"], "#{text}\n", mode: "a") }
end
run DownApp
