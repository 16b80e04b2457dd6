# frozen_string_literal: true
# SPDX-License-Identifier: MIT

port 3000, "127.0.0.1"
threads 0, 16
state_path "tmp/pids/puma.state"
state_permission 0o0640
on_restart { }
before_fork { }
