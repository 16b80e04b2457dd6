# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The Rails application over HTTP/2 in a real browser: pages, a form and Action Cable are streams, whether the server has the
# sockets or Action Cable's own server takes them (rack.hijack).

require "support/websocket_bridge"
require_relative "app_case"
require_relative "rails_app"
require_relative "rails_cable"
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
    ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, deadline: 60, binds: RailsHTTPS.binds,
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

# The clients of RailsCable go through a client of node that makes streams of their WebSockets.
module RailsHTTP2Cable
  def cable(query = {}, **options)
    @bridge ||= WebsocketBridge.new(server.url)
    peer = CablePeer.new(@bridge.url, query, **options)
    (@peers ||= []) << peer
    peer
  end

  def teardown
    super
    @bridge&.stop
  end
end

class RailsHTTP2Test < AppCase
  include RailsHTTPS
  include RailsHTTP2
  include RailsCable
  include RailsHTTP2Cable

  # They take long, and are not about the connection; for readers that are too slow see test/integration/http2.
  %i[test_a_client_that_reads_nothing test_subscriptions_and_identifiers_have_limits].each { |name| undef_method(name) }

  def self.start_server = RailsHTTP2.start

  def takes_sockets? = false
end

class RailsHTTP2HijackTest < AppCase
  include RailsHTTPS
  include RailsHTTP2
  include RailsCable
  include RailsHTTP2Cable

  # What every server of Action Cable does; the others are about the one on this server's connections.
  THEIRS = %i[test_streams_go_to_all_who_listen test_the_subprotocol
              test_a_remote_disconnect test_what_is_not_json_goes_to_nobody].freeze
  (RailsCable.instance_methods.grep(/\Atest_/) - THEIRS).each { |name| undef_method(name) }

  def self.start_server = RailsHTTP2.start("CABLE_BY" => "hijack")

  def takes_sockets? = true

  # The streams end with the server.
  def test_action_cable_and_a_form_over_https
    super
    page = @pages.first
    page.run("globalThis.ends = []; consumer.connection.webSocket.addEventListener('close', (event) => ends.push(event)); 0")
    assert_predicate server.stop, :success?
    self.class.stop_server # the next test begins another one
    page.wait_for("ends.length == 1")
  end
end
