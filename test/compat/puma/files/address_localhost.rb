# frozen_string_literal: true
# SPDX-License-Identifier: MIT

bind "unix:///tmp/app.sock?umask=0111"
set_remote_address :localhost
