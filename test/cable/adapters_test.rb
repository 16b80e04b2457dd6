# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "cable_case"

return unless Gem.loaded_specs.fetch("railties").version.segments.take(2) == [7, 2] # only its bundle has them

require "support/postgres_server"
require "support/redis_server"

# The adapters of Rails that carry broadcasts to other machines stay as they are configured: broadcasts get from one
# server to the clients of another one.
class CableAdaptersTest < CableCase
  SCHEMA = "lib/generators/solid_cable/install/templates/db/cable_schema.rb"

  # The tests start their own.
  def server = @servers.first

  def with_servers(cable, env = {})
    @servers = []
    @peers = []
    2.times { @servers << self.class.start_server(cable: cable, env: env) }
    broadcasts_get_to_both
    broadcasts_end_with_the_stream
  ensure
    @peers.each(&:close)
    @servers.each(&:stop)
  end

  def member_of(server, how: nil)
    peer = CablePeer.new(server.url).welcomed
    @peers << peer
    [peer, peer.subscribe(room: name, how: how)]
  end

  def broadcasts_get_to_both
    members = @servers.flat_map { |server| [member_of(server), member_of(server, how: "callback")] }
    members.first.then { |peer, id| peer.perform(id, "say", text: "Grüße") }
    members.each_slice(2) do |(fast, fast_id), (own, own_id)|
      assert_equal({ "text" => "Grüße" }, fast.hear_of(fast_id))
      assert_equal JSON.generate({ text: "Grüße" }), own.hear_of(own_id)["called"]
    end
  end

  # And one that begins anew is subscribed again. An adapter that polls brings a message later to one server than to the
  # other, so another client of the listener's server has to have it before.
  def broadcasts_end_with_the_stream
    listener, id = member_of(@servers.last)
    speaker, speaker_id = member_of(@servers.first)
    witness, witness_id = member_of(@servers.last)
    listener.perform(id, "quiet", room: "room #{name}").perform(id, "echo", text: "quiet")
    assert_equal "quiet", listener.hear_of(id)["echo"]
    speaker.perform(speaker_id, "say", text: "unheard")
    [[speaker, speaker_id], [witness, witness_id]].each { |peer, its_id| assert_equal({ "text" => "unheard" }, peer.hear_of(its_id)) }
    listener.command("unsubscribe", id).command("subscribe", id)
    assert_equal "confirm_subscription", listener.hear["type"]
    speaker.perform(speaker_id, "say", text: "heard")
    assert_equal({ "text" => "heard" }, listener.hear_of(id))
  end

  def test_redis
    redis = RedisServer.new
    with_servers({ adapter: "redis", url: redis.url, channel_prefix: "app" })
    assert_includes redis.cli("INFO", "commandstats"), "cmdstat_subscribe"
  ensure
    redis&.close
  end

  # Who has asked meanwhile is confirmed then, once, and what it does meanwhile is answered.
  def test_a_redis_that_starts_later
    redis = RedisServer.new.tap(&:kill)
    cable = { adapter: "redis", url: redis.url, reconnect_attempts: Array.new(6000, 0.05) }
    @servers = [self.class.start_server(cable: cable)]
    peer = CablePeer.new(server.url).welcomed
    id = peer.ask("RoomsChannel", room: name)
    assert_equal id, peer.ask("RoomsChannel", room: name) # as clients do that hear nothing
    peer.perform(id, "echo", text: "unconfirmed")
    assert_equal "unconfirmed", peer.hear_of(id)["echo"]
    redis.start
    assert_equal({ "identifier" => id, "type" => "confirm_subscription" }, peer.hear)
    peer.perform(id, "say", text: "heard")
    assert_equal({ "text" => "heard" }, peer.hear_of(id))
  ensure
    peer&.close
    @servers&.each(&:stop)
    redis&.close
  end

  def test_postgresql
    postgres = PostgresServer.new
    url = "postgresql://postgres@127.0.0.1:#{postgres.port}/postgres"
    with_servers({ adapter: "postgresql" }, { "DATABASE_URL" => url })
  ensure
    postgres&.close
  end

  def test_solid_cable
    Dir.mktmpdir do |folder|
      env = { "DATABASE_URL" => "sqlite3:#{folder}/cable.sqlite3", "SCHEMA" => SCHEMA }
      with_servers({ adapter: "solid_cable", polling_interval: "0.02.seconds", message_retention: "1.day" }, env)
    end
  end
end
