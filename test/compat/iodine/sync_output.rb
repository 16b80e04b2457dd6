# frozen_string_literal: true

# Loaded before a program whose output a test waits for: a file would get it at the end only.
# SPDX-License-Identifier: MIT

$stdout.sync = true
