# frozen_string_literal: true
# SPDX-License-Identifier: MIT

threads 1, 3
workers 2
