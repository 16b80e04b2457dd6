# frozen_string_literal: true
# SPDX-License-Identifier: MIT

workers 2
port 3000
before_fork { 1 }
before_worker_boot(:db) { |index, kept| kept[:pool] = index }
before_worker_shutdown(:db) { |index, kept| kept[:pool] }
before_worker_fork { |index| index }
after_worker_fork { |index| index }
after_worker_shutdown { |handle| handle }
before_restart { |launcher| launcher }
after_booted { 1 }
after_stopped { 2 }
before_thread_start { 3 }
before_thread_exit { 4 }
on_worker_shutdown { 5 }
after_worker_boot { 6 }
on_booted { 7 }
silence_single_worker_warning
silence_fork_callback_warning
