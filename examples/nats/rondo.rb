# frozen_string_literal: true

# Configuration file: rondo -C examples/nats/rondo.rb -w 2
# SPDX-License-Identifier: MIT

pubsub_engine do
  require_relative "engine"
  NatsEngine.new(ENV.fetch("NATS_URL", "nats://127.0.0.1:4222"))
end
