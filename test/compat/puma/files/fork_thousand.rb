# frozen_string_literal: true
# SPDX-License-Identifier: MIT

fork_worker 1_000
port 3000
