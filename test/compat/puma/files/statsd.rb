# frozen_string_literal: true
# SPDX-License-Identifier: MIT

plugin :statsd
workers 2
port 3000
on_worker_boot { }
