# frozen_string_literal: true

# A Redis whose gate (see waiting_clients.rb) is lists that are empty: BLPOP waits for their elements.
# SPDX-License-Identifier: MIT

require_relative "redis_server"

class RedisGate < RedisServer
  LISTS = 20

  # @return [Array<String>] a command that waits at the gate, and returns [the list, this number times seven]
  def self.command(number)
    ["BLPOP", "gate:#{number}", "0"]
  end

  # @return [String]
  def version
    cli("INFO", "server")[/^redis_version:(\d+\.\d+)/, 1]
  end

  def inside
    Integer(cli("INFO", "clients")[/^blocked_clients:(\d+)/, 1])
  end

  def open
    cli("EVAL", "for i = 1, #{LISTS} do redis.call('RPUSH', 'gate:' .. i, i * 7) end", "0")
  end

  def shut
    cli("FLUSHALL")
  end

  def kill_session(id)
    cli("CLIENT", "KILL", "ID", id.to_s)
  end

  alias crash kill
end
