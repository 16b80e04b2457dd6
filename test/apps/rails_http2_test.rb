# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The Rails application over HTTP/2 in a real browser: pages, a form and Action Cable are streams, whether the server has the
# sockets or Action Cable's own server takes them (rack.hijack).

require_relative "app_case"
require_relative "rails_app"
require_relative "rails_https"

module RailsHTTP2
  # What the channels of the page may ask for once they are there.
  ROOM = <<~SCRIPT
    globalThis.told = [];
    globalThis.room = consumer.subscriptions.create({ channel: "RoomsChannel", room: "h2" }, {
      connected: () => ["protocol", "threads", "echo"].forEach((action) => room.perform(action, { text: "x".repeat(100000) })),
      received: (message) => told.push(message)
    });
    0
  SCRIPT

  def self.start(env = {})
    app = RailsApp.instance
    ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, deadline: 60, binds: [RailsHTTPS.binds.last],
                                                        config: "http2 true\n",
                                                        env: RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", **env))
  end

  # Large messages go both ways.
  def check_rooms
    page = @pages.first
    page.run(ROOM)
    page.wait_for("told.length == 3")
    told = page.run("told").reduce(:merge)
    assert_equal "x" * 100_000, told["echo"]
    assert_equal "HTTP/2", told["protocol"]
    assert_equal takes_sockets?, told["threads"].grep(/ActionCable|nio/i).any?, told["threads"]
  end

  def test_action_cable_and_a_form_over_https
    super
    check_rooms
    assert_equal ["h2"], @pages.first.run("performance.getEntries().map(it => it.nextHopProtocol).filter(it => it)").uniq
    assert_empty @pages.first.errors
  end
end

class RailsHTTP2Test < AppCase
  include RailsHTTPS
  include RailsHTTP2

  def self.start_server = RailsHTTP2.start

  def takes_sockets? = false
end

class RailsHTTP2HijackTest < AppCase
  include RailsHTTPS
  include RailsHTTP2

  def self.start_server = RailsHTTP2.start("CABLE_BY" => "hijack")

  def takes_sockets? = true

  # The streams end with the server.
  def test_action_cable_and_a_form_over_https
    super
    page = @pages.first
    page.run("globalThis.ends = []; consumer.connection.webSocket.addEventListener('close', (event) => ends.push(event)); 0")
    assert_predicate server.stop, :success?
    page.wait_for("ends.length == 1")
  end
end
