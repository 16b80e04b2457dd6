# frozen_string_literal: true
# SPDX-License-Identifier: MIT

single { threads 1, 1 }
cluster { threads 3, 3; preload_app! false }
workers 1
port 3000
worker_culling_strategy :oldest
