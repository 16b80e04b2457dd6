# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: RAILS_ENV=production PUMA_WORKERS=auto

require "etc"

environment ENV.fetch("RAILS_ENV", "development")
workers_count = ENV["PUMA_WORKERS"] == "auto" ? [Etc.nprocessors, 4].min.clamp(2, 2) : ENV.fetch("PUMA_WORKERS", 0).to_i
workers workers_count
if workers_count.positive?
  fork_worker 1000
  before_fork { defined?(ActiveRecord::Base) && ActiveRecord::Base.connection_handler.clear_all_connections! }
  on_refork { GC.compact if GC.respond_to?(:compact) }
end
first_data_timeout 15
bind_to_activated_sockets ENV["ONLY_SYSTEMD"] ? "only" : true
