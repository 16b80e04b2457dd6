# frozen_string_literal: true

# The example: a job publishes a message, and the browsers of a cluster get it.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "support/redis_server"
require "support/websocket_peer"

class NotificationsTest < ShellCase
  def test_a_job_reaches_the_browsers
    redis = RedisServer.new
    server = start("-r", redis.url, "-w", "2", "--control-url", "auto", "-S", "state", File.join(ROOT, "examples/notifications/config.ru"))
    server.wait_for_log(/booted.*booted/m)
    assert_includes get(server).body, "new WebSocket"
    peers = Array.new(4) { WebsocketPeer.new(server.url) }
    eventually("four subscriptions") { rondo("ctl", "stats", "-S", "state").out.scan(/"subscriptions": ?(\d+)/).flatten.sum(&:to_i) == 4 }
    subscribers = eventually("a subscription of the server") { redis.cli("PUBSUB", "NUMSUB", "notifications").split.last[/\A[1-9].*/] }
    assert_equal "1", subscribers
    job = run_command(RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", File.join(ROOT, "examples/notifications/job.rb"),
                      "the report is ready", env: { "REDIS_URL" => redis.url })
    assert_equal 0, job.code, job.err
    assert_equal(["the report is ready"] * 4, peers.map(&:hear))
  ensure
    peers&.each(&:close)
    redis&.close
  end
end
