# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: NUM_WEBS=3 APP_ROOT=/tmp

if ENV["NUM_WEBS"]
  workers ENV["NUM_WEBS"].to_i
  root = ENV.fetch("APP_ROOT")
  directory root
  bind "unix://#{root}/tmp/sockets/puma.sock"
  pidfile "#{root}/tmp/pids/puma.pid"
  state_path "#{root}/tmp/pids/puma.state"
  activate_control_app "unix://#{root}/tmp/sockets/pumactl.sock"
  threads 8, 32
  preload_app!
end
