# frozen_string_literal: true

# What the tests of requests that wait need, and what is not loaded anew.
# SPDX-License-Identifier: MIT

# Says, outside of the interlock, who waits for it.
class InterlockReport
  def initialize(app)
    @app = app
  end

  def call(env)
    return @app.call(env) unless env["PATH_INFO"] == "/interlock"

    waiting = ActiveSupport::Dependencies.interlock.raw_state { |all| all.values.filter_map { |one| one[:sleeper] } }
    [200, { "content-type" => "text/plain" }, [waiting.join(" ")]]
  end
end

Rails.application.configure do
  config.x.meeting = Concurrent::Map.new { |all, name| all.compute_if_absent(name) { Queue.new } }
  config.middleware.insert_before 0, InterlockReport
  config.i18n.available_locales = %i[en de]
  config.active_support.isolation_level = ENV["ISOLATION"].to_sym if ENV.key?("ISOLATION")
end
