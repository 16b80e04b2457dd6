# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: RAILS_ENV=development

if ENV["RAILS_ENV"] == "development"
  key = File.join("/tmp", "localhost-key.pem")
  cert = key.sub("-key", "")
  ssl_bind "127.0.0.1", "3001", cert: cert, key: key, verify_mode: "none"
  worker_timeout 3600
end
port ENV.fetch("PORT", 3000)
plugin "tmp_restart"
silence_single_worker_warning
