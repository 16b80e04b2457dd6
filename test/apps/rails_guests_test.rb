# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The generated Rails application by `rails server -u iodine` and `-u up`, with the gems of this project that have these
# handlers.

require_relative "app_case"
require_relative "rails_app"
require "support/held_port"

class RailsGuestsTest < Minitest::Test
  # What only this handler says, or sets.
  HANDLERS = { "iodine" => /Setting: max_message_bytes 256000 /, "up" => /^=> Booting Up$/ }.freeze

  # @param name [String] of a handler; its gem is not in the application's Gemfile
  def serving(name)
    app = RailsApp.instance
    port = HeldPort.new
    env = { "RUBYLIB" => File.join(ServerProcess::ROOT, "gems/rondo-#{name}/lib"), "RACK_ENV" => nil, "RAILS_ENV" => "development",
            "THREADS" => "2", "WORKERS" => "1", "PORT" => nil, "WEB_CONCURRENCY" => nil }
    guest = RailsServerProcess.new(app.rails, args: ["-u", name, "-p", port.number.to_s, "-P", File.join(app.path, "tmp/pids/#{name}.pid")],
                                              spawn: { chdir: app.path }, deadline: 60, env: RailsApp::ENVIRONMENT.merge(env))
    yield guest
    assert_predicate guest.stop(signal: "INT"), :success?
  ensure
    guest&.kill
    port&.close
  end

  HANDLERS.each do |name, sign|
    define_method("test_#{name}") do
      serving(name) do |guest|
        assert_equal "cached", Browser.new(guest.url).get("/cached").body
        assert_equal "200", Browser.new(guest.url).get("/notes").code
        assert_match sign, guest.log
      end
    end
  end
end
