# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: PROXY_PROTO_V1=true

bind "tcp://127.0.0.1:3000"
set_remote_address(proxy_protocol: :v1) if ENV["PROXY_PROTO_V1"] == "true"
