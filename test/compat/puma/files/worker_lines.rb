# frozen_string_literal: true
# SPDX-License-Identifier: MIT

pidfile "/tmp/t3-pid"
workers 3
before_worker_boot { |index| File.join("/tmp", "worker-#{index}") }
before_worker_shutdown { 1 }
before_worker_fork { 1 }
before_restart { 1 }
after_worker_fork { 1 }
after_worker_shutdown { |worker| worker.index }
