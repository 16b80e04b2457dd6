# frozen_string_literal: true
# SPDX-License-Identifier: MIT

worker_shutdown_timeout 0
preload_app! false
workers 2
before_fork { Process.pid }
port 3000
