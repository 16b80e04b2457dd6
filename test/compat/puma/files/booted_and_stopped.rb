# frozen_string_literal: true
# SPDX-License-Identifier: MIT

after_booted { Process.kill(:TERM, Process.pid) }
after_stopped { puts "stopped" }
on_booted { puts "booted" }
on_stopped { puts "stopped" }
after_booted { puts "once more" }
port 3000
