# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: PIDFILE=tmp/pids/server.pid

pidfile ENV["PIDFILE"] if ENV["PIDFILE"]
@options[:pidfile] = false
port 3000
