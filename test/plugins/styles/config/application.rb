# frozen_string_literal: true

# A Rails application with Tailwind, small enough for tests.
# SPDX-License-Identifier: MIT

require "rails"
require "action_controller/railtie"
require "tailwindcss-rails"

class Styles < Rails::Application
  config.load_defaults 7.2
  config.root = File.expand_path("..", __dir__)
  config.assets = ActiveSupport::OrderedOptions.new # those of an asset pipeline
  config.eager_load = false
  config.secret_key_base = "0123456789abcdef" * 4
  config.logger = ActiveSupport::Logger.new(File::NULL)
end
