# frozen_string_literal: true
# SPDX-License-Identifier: MIT

port 3000
set_remote_address "192.0.2.1"
