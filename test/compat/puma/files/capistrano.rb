# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: RAILS_ENV=staging

shared = "/tmp/shared"
directory "/tmp"
rackup "/tmp/config.ru"
environment ENV.fetch("RAILS_ENV")
tag ""
pidfile "#{shared}/puma.pid"
state_path "#{shared}/puma.state"
threads 4, 16
bind "unix://#{shared}/puma.sock"
workers 0
restart_command "bundle exec puma"
prune_bundler
on_restart do
  puts "Refreshing Gemfile"
  ENV["BUNDLE_GEMFILE"] = ""
end
