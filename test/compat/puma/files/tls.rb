# frozen_string_literal: true
# SPDX-License-Identifier: MIT

ssl_bind "0.0.0.0", 9443, cert: "/tmp/cert.pem", key: "/tmp/key.pem", verify_mode: "none"
