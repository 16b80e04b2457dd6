# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: HTTP_TIMEOUT=75

supported_http_methods %w[GET HEAD POST PUT PATCH DELETE OPTIONS]
http_content_length_limit 50 * 1024 * 1024
idle_timeout ENV["IDLE"].to_i if ENV["IDLE"]
persistent_timeout ENV.fetch("HTTP_TIMEOUT").to_i
max_keep_alive 100
early_hints true
bind "tcp://0.0.0.0:#{ENV.fetch("PORT", 4567)}"
log_formatter { |text| "[#{Process.pid}] #{text}" }
