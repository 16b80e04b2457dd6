# frozen_string_literal: true

# Three machines of examples/recipes/machines, with a Redis, behind HAProxy: a client resumes at another machine, a
# program publishes from outside, signed names and presence are the same everywhere.
# SPDX-License-Identifier: MIT

require_relative "recipe_case"
require "rondo/pubsub/publisher"
require "support/open_stream"
require "support/redis_server"

class RecipeMachinesTest < RecipeCase
  NAMES = %w[one two three].freeze

  def setup
    super
    FileUtils.cp_r(File.join(RECIPES, "machines/."), @folder)
    @redis = RedisServer.new
    @ports = NAMES.to_h { |name| [name, [free_port, free_port]] }
  end

  def teardown
    super
    @redis.close
  end

  def test_what_holds_at_all_machines
    front = haproxy_in_front
    one, two, three = NAMES.map { |name| serve_as(name) }
    eventually("HAProxy has a machine") { fetch(front.url).code == "200" }
    path = "/events?channel=#{URI.encode_www_form_component(fetch(front.url, "/sign").body)}"
    id = assert_published(path)
    one.stop(signal: "TERM")
    publish("second")
    assert_resumed(front, path, id)
    assert_equal "403", fetch(front.url, "#{path}x").code
    assert_lobby(front)
    [two, three].each { |server| server.stop(signal: "TERM") }
  end

  private

  # The recipe for two, with three servers.
  def haproxy_in_front
    servers = @ports.map { |name, (web, control)| "    server #{name} 127.0.0.1:#{web} port #{control}\n" }
    proxy("haproxy") do |own|
      config = filled("haproxy_two.cfg", "bind :80" => "bind 127.0.0.1:#{own.port}", **PATIENT_CHECKS).sub(/(^ *server .*\n)+/, servers.join)
      [program("haproxy"), "-db", "-f", own.write("haproxy.cfg", config)]
    end
  end

  def serve_as(name)
    web, control = @ports.fetch(name).map(&:to_s)
    serve("bundle exec rondo", { "PORT" => web, "CONTROL_PORT" => control, "CONTROL_TOKEN" => "change-me", "REDIS_URL" => @redis.url,
                                 "SIGNING_SECRET" => "s" * 32, "RONDO_PRESENCE_SECRET" => "p" * 32, "TRUSTED_PROXIES" => "127.0.0.1" })
  end

  # By a program that is no server, through another machine than that of the client.
  def publish(text)
    Rondo::Publisher.new("http://127.0.0.1:#{@ports["two"].last}", token: "change-me").publish("news", text, confirm: 30)
  end

  # The client asks for all there is: it may subscribe before or after that.
  # @return [Integer] the id of the message
  def assert_published(path)
    stream = OpenStream.new(@ports["one"].first, path, last: "0")
    publish("first").tap { |id| assert stream.hears?("id: #{id}\ndata: first") }
  ensure
    stream&.close
  end

  def assert_resumed(front, path, id)
    stream = OpenStream.new(front.port, path, last: id)
    assert stream.hears?("data: second")
    refute_includes stream.text, "first"
  ensure
    stream&.close
  end

  # Who is here is known at each machine.
  def assert_lobby(front)
    peers = %w[two three].map { |name| WebsocketPeer.new("http://127.0.0.1:#{@ports[name].first}", "room") }
    assert_equal %w[welcome welcome], peers.zip(%w[ada bob]).map { |peer, name| peer.ask(name) }
    eventually("both are in the lobby") { fetch(front.url, "/lobby").body == "ada\nbob" }
  ensure
    peers&.each(&:close)
  end
end
