# frozen_string_literal: true
# SPDX-License-Identifier: MIT

log_requests
log_formatter { |text| "[app] #{text}" }
custom_logger Class.new { def write(text) = text }.new
stdout_redirect "/tmp/out.log"
quiet false
debug
port 3000
