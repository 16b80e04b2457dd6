# frozen_string_literal: true
# SPDX-License-Identifier: MIT

prune_bundler true
extra_runtime_dependencies ["rdoc"]
workers 2
before_fork { $LOAD_PATH.last }
port 3000
