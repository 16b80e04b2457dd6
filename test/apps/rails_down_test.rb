# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "app_case"
require "support/cable_peer"

# An adapter of Action Cable that is away when clients come.
class RailsDownTest < Minitest::Test
  APP = File.join(__dir__, "rails_down/config.ru")

  def test_a_client_that_asks_again_is_confirmed_when_the_adapter_is_there
    Dir.mktmpdir do |folder|
      up = File.join(folder, "up")
      ServerProcess.run(APP, env: { "UP" => up, "RAILS_ENV" => "production" }) do |server|
        peer = CablePeer.new(server.url).welcomed
        id = peer.ask("RoomsChannel")
        server.wait_for_log(/RoomsChannel cannot stream from room: it is down \(RuntimeError\)/)
        File.write(up, "")
        assert_equal id, peer.subscribe("RoomsChannel")
        assert_equal "heard", peer.perform(id, "say", text: "heard").hear_of(id)
      ensure
        peer&.close
      end
    end
  end
end
