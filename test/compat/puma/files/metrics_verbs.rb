# frozen_string_literal: true
# SPDX-License-Identifier: MIT

plugin :metrics
metrics_url "tcp://0.0.0.0:9393"
port 3000
