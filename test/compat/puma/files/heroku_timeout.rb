# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: PORT=5000 RACK_ENV=production

workers Integer(ENV["WEB_CONCURRENCY"] || 2)
threads_count = Integer(ENV["RAILS_MAX_THREADS"] || 5)
threads threads_count, threads_count
preload_app!
rackup DefaultRackup if defined?(DefaultRackup)
port ENV["PORT"] || 3000
environment ENV["RACK_ENV"] || "development"
worker_timeout 25
worker_shutdown_timeout 25
force_shutdown_after 20
enable_keep_alives(false) if respond_to?(:enable_keep_alives)
log_requests ENV["LOG_REQUESTS"] == "1"
quiet
