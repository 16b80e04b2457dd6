# frozen_string_literal: true
# SPDX-License-Identifier: MIT

fork_worker
nakayoshi_fork if respond_to?(:nakayoshi_fork)
on_refork { }
workers 3
wait_for_less_busy_worker 0.002
port 3000
