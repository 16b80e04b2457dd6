# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Action Cable of Rails 8.2, as the gem actioncable-next has it for older ones: sockets and connections are apart. Runs if
# RONDO_TEST_CABLE is "next": the gem takes the place of the bundle's (`bin/test --long`).

return unless ENV["RONDO_TEST_CABLE"] == "next"

require_relative "app_case"
require_relative "rails_app"
require_relative "rails_cable"

class RailsCableNextTest < AppCase
  include RailsCable

  VERSION = "0.2.0"
  HOME = File.join(ServerProcess::ROOT, "build/cable-next")

  def self.library
    library = File.join(HOME, "gems/actioncable-next-#{VERSION}/lib")
    return library if File.directory?(library)

    command = ["gem", "install", "actioncable-next", "-v", VERSION, "--ignore-dependencies", "--no-document", "-i", HOME]
    output, status = Open3.capture2e({ "RUBYOPT" => nil, "BUNDLE_GEMFILE" => nil }, *command)
    raise output unless status.success?

    library
  end

  def self.start_server(env = {})
    app = RailsApp.instance
    ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, deadline: 60,
                                                        env: RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", "RUBYLIB" => library, **env))
  end

  def test_it_is_the_other_action_cable
    peer, id = member
    peer.perform(id, "of_server")
    assert_equal [true, "ActionCable::Server::Socket"], peer.hear_of(id).values_at("native", "kind")
  end
end
