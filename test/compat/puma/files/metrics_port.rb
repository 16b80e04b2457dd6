# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: WEB_CONCURRENCY=2 METRICS=1

workers ENV.fetch("WEB_CONCURRENCY", 0).to_i
threads 3, 3
port 3000
if ENV["METRICS"]
  activate_control_app "tcp://127.0.0.1:9293", no_token: true
  after_worker_boot { Process.clock_gettime(Process::CLOCK_MONOTONIC) } if respond_to?(:after_worker_boot)
  on_worker_shutdown { |_index| $stdout.flush }
  on_thread_start { Thread.current[:started] = true }
  on_thread_exit { Thread.current[:started] = nil }
end
