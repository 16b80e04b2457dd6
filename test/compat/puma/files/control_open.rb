# frozen_string_literal: true
# SPDX-License-Identifier: MIT

activate_control_app "unix:///tmp/control.sock", { no_token: true }
port 3000
