# frozen_string_literal: true

# Presence over servers that share only a NATS, without and with JetStream.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/nats_server"
require "support/presence_machines"

class NatsPresenceTest < ShellCase
  include PresenceMachines
  include PresenceMachines::Tests

  private

  def start_engine
    NatsServer.new
  end

  def engine_lines(nats, queue)
    "nats #{nats.url.inspect}, queue: #{queue}"
  end
end

class JetStreamPresenceTest < ShellCase
  include PresenceMachines
  include PresenceMachines::Tests

  private

  def start_engine
    NatsServer.new("-js", "-sd", "FOLDER/store")
  end

  def engine_lines(nats, queue)
    "nats #{nats.url.inspect}, jetstream: true, queue: #{queue}"
  end
end
