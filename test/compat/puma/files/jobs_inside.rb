# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: JOBS=1 RAILS_ENV=production

threads ENV.fetch("RAILS_MAX_THREADS", 3), ENV.fetch("RAILS_MAX_THREADS", 3)
port ENV.fetch("PORT", 3000)
workers ENV.fetch("WEB_CONCURRENCY", 1)
embedded = nil
if ENV["JOBS"]
  preload_app!
  on_worker_boot { embedded = Object.new }
  on_worker_shutdown { embedded = nil }
  on_booted { embedded || :single }
end
plugin :tmp_restart
pidfile ENV["PIDFILE"] if ENV["PIDFILE"]
state_path "tmp/puma.state"
