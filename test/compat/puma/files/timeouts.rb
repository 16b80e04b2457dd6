# frozen_string_literal: true
# SPDX-License-Identifier: MIT

first_data_timeout 10
persistent_timeout 75
worker_check_interval 2
worker_timeout 30
worker_boot_timeout 120
worker_shutdown_timeout 15
force_shutdown_after 20
idle_timeout 600
workers 2
port 3000
