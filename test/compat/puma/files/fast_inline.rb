# frozen_string_literal: true
# SPDX-License-Identifier: MIT

max_fast_inline 50
enable_keep_alives false
queue_requests false
port 3000
