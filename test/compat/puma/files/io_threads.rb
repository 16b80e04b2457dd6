# frozen_string_literal: true
# SPDX-License-Identifier: MIT

threads 5
max_io_threads 5
port 3000
