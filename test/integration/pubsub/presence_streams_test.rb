# frozen_string_literal: true

# Presence over servers that share only a Redis with streams.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/presence_machines"
require "support/redis_server"

class PresenceStreamsTest < ShellCase
  include PresenceMachines
  include PresenceMachines::Tests

  private

  def start_engine
    RedisServer.new
  end

  def engine_lines(redis, queue)
    <<~RUBY
      require "rondo/pubsub/redis_streams"
      pubsub_engine { Rondo::PubSub::RedisStreams.new(#{redis.url.inspect}, queue: #{queue}).tap(&:start) }
    RUBY
  end
end
