# frozen_string_literal: true
# SPDX-License-Identifier: MIT

workers 2
on_worker_boot(:test) { |index, data| data[:test] = index }
on_worker_shutdown(:test) { |_index, data| data[:test] }
before_worker_boot { |_index| 1 }
port 3000
