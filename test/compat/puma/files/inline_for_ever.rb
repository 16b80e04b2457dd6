# frozen_string_literal: true
# SPDX-License-Identifier: MIT

max_fast_inline Float::INFINITY
io_selector_backend :ruby
wait_for_less_busy_worker "0.005".to_f
port 3000
