# frozen_string_literal: true

# A NATS server that belongs to the test.
# SPDX-License-Identifier: MIT

require "support/child_server"

class NatsServer < ChildServer
  def url
    "nats://127.0.0.1:#{port}"
  end

  private

  def command
    ["nats-server", "-a", "127.0.0.1", "-p", port.to_s]
  end
end
