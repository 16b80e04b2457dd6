# frozen_string_literal: true
# SPDX-License-Identifier: MIT

bind "tcp://127.0.0.1:9292"
bind "tcp://[::1]:9292?backlog=64"
bind "unix:///tmp/app.sock?umask=0117&backlog=100"
clear_binds!
bind "tcp://0.0.0.0:9293"
port 9294, "localhost"
