# frozen_string_literal: true
# SPDX-License-Identifier: MIT

activate_control_app "tcp://127.0.0.1:9293", { auth_token: "secret" }
port 3000
