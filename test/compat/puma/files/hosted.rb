# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: WEB_CONCURRENCY=2 PORT=5000 RACK_ENV=production

workers Integer(ENV["WEB_CONCURRENCY"] || 2)
threads_count = Integer(ENV["RAILS_MAX_THREADS"] || 5)
threads threads_count, threads_count
preload_app!
rackup      DefaultRackup if defined?(DefaultRackup)
port        ENV["PORT"] || 3000
environment ENV["RACK_ENV"] || "development"
on_worker_boot { }
