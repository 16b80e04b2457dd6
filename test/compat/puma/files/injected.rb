# frozen_string_literal: true
# SPDX-License-Identifier: MIT

shared = proc { threads 2, 4 }
inject(&shared)
set_default_host "127.0.0.1"
port 4000
tag default_host
