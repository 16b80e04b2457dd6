# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: FORGE_WORKERS=3

require "socket"

directory "/tmp"
rackup "config.ru"
worker_boot_timeout 120 if ENV["SLOW_BOOT"]
stdout_redirect nil, nil, true
queue_requests true
threads 1, 16
workers Integer(ENV.fetch("FORGE_WORKERS", 2))
bind "unix:///tmp/forge.socket?umask=0077&backlog=1024"
bind "tcp://127.0.0.1:8080"
tag "forge-#{Socket.gethostname[0, 0]}worker"
worker_timeout 60
wait_for_less_busy_worker ENV.fetch("WAIT", "0.001").to_f
nakayoshi_fork if respond_to?(:nakayoshi_fork)
preload_app!
before_fork { GC.start }
on_worker_boot { |index| Process.setproctitle("forge #{index}") if ENV["TITLES"] }
lowlevel_error_handler do |error, env|
  [500, { "content-type" => "text/plain" }, ["#{error.class} at #{env["PATH_INFO"]}"]]
end
