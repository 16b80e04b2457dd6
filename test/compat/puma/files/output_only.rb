# frozen_string_literal: true
# SPDX-License-Identifier: MIT

log_requests
stdout_redirect "/tmp/t2-stdout"
pidfile "/tmp/t2-pid"
bind "tcp://0.0.0.0:10103"
rackup File.expand_path("../rackup/hello.ru", __dir__)
