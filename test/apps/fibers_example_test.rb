# frozen_string_literal: true

# examples/fibers.rb: many requests at once, in a program that is no server.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rbconfig"
require "support/http_gate"
require "support/waiting_clients"

class FibersExampleTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)
  COMMAND = [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", File.join(ROOT, "examples/fibers.rb")].freeze

  def test_a_server_of_its_own
    output, status = Open3.capture2e(*COMMAND)
    assert status.success?, output
    assert_match(/\A\{"200"\s?=>\s?1000\} in [\d.]+ s\n\z/, output)
  end

  def test_all_requests_are_in_the_server_at_once
    gate = HTTPGate.new
    output = IO.popen([*COMMAND, gate.url("/wait/1"), "50"])
    WaitingClients.wait_until { gate.inside == 50 }
    gate.open
    assert_match(/\A\{"200"\s?=>\s?50\} in [\d.]+ s\n\z/, output.read)
  ensure
    output&.close
    gate&.close
  end
end
