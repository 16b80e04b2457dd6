# frozen_string_literal: true
# SPDX-License-Identifier: MIT

threads "2", "5"
workers "3"
port "3000"
daemon = false
on_worker_fork { }
on_thread_start { }
on_thread_exit { }
on_stopped { }
shutdown_debug
drain_on_shutdown
io_selector_backend :epoll
mutate_stdout_and_stderr_to_sync_on_write false
bind_to_activated_sockets
extra_runtime_dependencies ["json"]
