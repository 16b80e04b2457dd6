# frozen_string_literal: true
# SPDX-License-Identifier: MIT

directory "/tmp"
rackup "/tmp/config.ru"
environment "production"
pidfile "/tmp/shared/pids/puma.pid"
state_path "/tmp/shared/pids/puma.state"
stdout_redirect "/tmp/shared/log/access.log", "/tmp/shared/log/error.log", true
threads 4, 16
bind "unix:///tmp/shared/sockets/puma.sock"
workers 0
restart_command "bundle exec puma"
prune_bundler
on_restart { ENV["BUNDLE_GEMFILE"] = "" }
