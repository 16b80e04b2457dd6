# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "cable_case"

# What Action Cable does with any version of Rails.
class CableVersionTest < CableCase
  include RailsCable

  def turbo? = false
  def says_remote? = !IS_7_0

  def test_it_is_the_version
    peer = cable.welcomed
    id = peer.subscribe(room: name)
    assert_equal true, peer.perform(id, "of_server").hear_of(id)["native"]
    server.wait_for_log(/Successfully upgraded to WebSocket/)
  end
end
