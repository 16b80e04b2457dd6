# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: REMOTE_ADDRESS_HEADER=X-Forwarded-For

port 3000
set_remote_address header: ENV["REMOTE_ADDRESS_HEADER"] if ENV["REMOTE_ADDRESS_HEADER"]
