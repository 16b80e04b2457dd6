# frozen_string_literal: true
# SPDX-License-Identifier: MIT

max_keep_alive Float::INFINITY
enable_keep_alives true
port 3000
