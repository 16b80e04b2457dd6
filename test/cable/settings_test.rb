# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "cable_case"
require "net/http"

# Settings of Rails' Action Cable, and the one that leaves all to Rails.
class CableSettingsTest < CableCase
  SETTINGS = <<~RUBY
    config.action_cable.mount_path = "/sockets/of/this"
    config.action_cable.health_check_path = "/is-up" if Rails::VERSION::STRING.to_f >= 7.1
    initializer("another mount") { |app| app.routes.append { mount ActionCable.server => "/by/hand" } }
    config.action_cable.disable_request_forgery_protection = true
    config.rondo.max_cable_subscriptions = 2
    config.middleware.insert_before 0, (Class.new do
      def initialize(app) = @app = app

      def call(env)
        return @app.call(env) unless env["PATH_INFO"] == "/restart"

        ActionCable.server.restart
        [200, {}, []]
      end
    end)
  RUBY

  def self.start_server
    super(cable: { adapter: "rondo", channel_prefix: "of this", socket_folder: Dir.mktmpdir }, settings: SETTINGS)
  end

  def peer(**options)
    @all ||= []
    (@all << CablePeer.new(server.url, path: "sockets/of/this", **options)).last.welcomed
  end

  def teardown
    @all&.each(&:close)
    super
  end

  # The prefix is in all names alike, so nobody sees it.
  def test_another_path_and_a_prefix
    pair = Array.new(2) { peer(origin: "http://stranger.example") }
    ids = pair.map { |one| one.subscribe(room: name) }
    pair.first.perform(ids.first, "say", text: "heard")
    pair.zip(ids) { |one, id| assert_equal({ "text" => "heard" }, one.hear_of(id)) }
    assert_equal "404", browser.get("/cable").code
    mounted = CablePeer.new(server.url, path: "by/hand").welcomed
    id = mounted.subscribe(room: name)
    assert_equal({ "text" => "here too" }, mounted.perform(id, "say", text: "here too").hear_of(id))
    pair.zip(ids) { |one, its| assert_equal({ "text" => "here too" }, one.hear_of(its)) }
  ensure
    mounted&.close
  end

  def test_health_check
    skip "Rails 7.0 has no health check" if IS_7_0
    assert_equal "200", browser.get("/by/hand/is-up").code
  end

  def test_our_own_limit
    one = peer
    2.times { |number| one.subscribe(room: number) }
    id = one.ask("RoomsChannel", room: "third")
    assert_equal({ "identifier" => id, "type" => "reject_subscription" }, one.hear)
  end

  def test_a_restart
    one = peer
    one.subscribe(room: name)
    assert_equal "200", browser.get("/restart").code
    assert_equal({ "type" => "disconnect", "reason" => "server_restart", "reconnect" => true }, one.hear)
    assert_equal [1000, ""], one.hear_close
    again = peer
    id = again.subscribe(room: name)
    assert_equal({ "text" => "heard" }, again.perform(id, "say", text: "heard").hear_of(id))
  end
end

# Rails' own, by hijack.
class CableOffTest < CableCase
  def self.start_server
    super(settings: "config.rondo.action_cable = false")
  end

  def test_rails_own_way
    peer = CablePeer.new(server.url).welcomed
    id = peer.subscribe(room: name)
    assert_equal({ "text" => "heard" }, peer.perform(id, "say", text: "heard").hear_of(id))
    refute_empty peer.perform(id, "threads").hear_of(id)["threads"].grep(/worker/i)
  ensure
    peer&.close
  end
end
