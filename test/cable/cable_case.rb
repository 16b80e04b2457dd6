# frozen_string_literal: true

# The application of test/cable/app, and the bundle that runs these tests.
# SPDX-License-Identifier: MIT

require "json"
require "apps/app_case"
require "apps/rails_cable"

class CableCase < AppCase
  APP = File.join(__dir__, "app/config.ru")
  IS_7_0 = Gem.loaded_specs.fetch("railties").version.segments.take(2) == [7, 0]
  # Adapters ask for their gem, so the application has the bundle, too.
  BUNDLE = { "RUBYLIB" => nil, "RUBYOPT" => "-rbundler/setup", "RACK_ENV" => nil, "RAILS_ENV" => "production" }.freeze

  class << self
    # @param cable [Hash] what config/cable.yml would have
    # @param settings [String] of the application
    def start_server(cable: { adapter: "async" }, settings: "", env: {}, **options)
      FileUtils.mkdir_p(File.join(root, "config"))
      File.write(File.join(root, "config/cable.yml"), JSON.generate({ production: cable }))
      env = { "APP_ROOT" => root, "SETTINGS" => settings, **BUNDLE, **env }
      ServerProcess.new(APP, env: env, **options)
    end

    def root
      @root ||= Dir.mktmpdir("cable").tap { |path| Minitest.after_run { FileUtils.rm_rf(path) } }
    end
  end
end
