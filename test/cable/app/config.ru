# frozen_string_literal: true

# A Rails application in one file, for any version from 7.0 on, with the channels of test/apps/rails. Its folder is
# APP_ROOT, which has config/cable.yml.
# SPDX-License-Identifier: MIT

require "logger"
require "rails"
require "active_record/railtie" if ENV.key?("DATABASE_URL")
require "action_controller/railtie"
require "action_cable/engine"
require "solid_cable" if ENV.key?("SCHEMA")
require "rondo"

class CableApp < Rails::Application
  CHANNELS = [File.join(__dir__, "channels"), File.expand_path("../../apps/rails/app/channels", __dir__)].freeze

  config.root = ENV.fetch("APP_ROOT")
  config.load_defaults [7.0, Rails::VERSION::STRING.to_f].max
  config.eager_load = false
  config.autoload_paths.concat(CHANNELS)
  config.secret_key_base = "a" * 64
  config.logger = Logger.new($stdout)
  config.hosts = nil
  config.action_cable.allowed_request_origins = [%r{\Ahttp://127\.0\.0\.1:\d+\z}]
  config.action_cable.allow_same_origin_as_host = false
  instance_eval(ENV.fetch("SETTINGS", ""))
end

CableApp.initialize!
ActiveRecord::Schema.verbose = false if defined?(ActiveRecord)
load Gem.loaded_specs.fetch("solid_cable").full_gem_path.then { |path| File.join(path, ENV["SCHEMA"]) } if ENV.key?("SCHEMA")
run CableApp
