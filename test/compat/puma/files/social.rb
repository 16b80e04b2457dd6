# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: SOCKET=/tmp/social.sock MAX_THREADS=5 WEB_CONCURRENCY=2

persistent_timeout ENV.fetch("PERSISTENT_TIMEOUT") { 20 }.to_i
low, high = ENV.fetch("MIN_THREADS") { ENV.fetch("MAX_THREADS") { 5 } }.to_i, ENV.fetch("MAX_THREADS") { 5 }.to_i
threads low, high
if ENV["SOCKET"]
  bind "unix://#{ENV["SOCKET"]}"
else
  bind "tcp://#{ENV.fetch("BIND", "127.0.0.1")}:#{ENV.fetch("PORT", 3000)}"
end
environment ENV.fetch("RAILS_ENV") { "development" }
workers ENV.fetch("WEB_CONCURRENCY") { 2 }.to_i
preload_app!
on_worker_boot { ENV["IN_WORKER"] = "1" }
plugin :tmp_restart
set_remote_address(header: "X-Real-IP") if ENV["REAL_IP"]
