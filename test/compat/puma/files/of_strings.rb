# frozen_string_literal: true
# SPDX-License-Identifier: MIT

persistent_timeout "6"
first_data_timeout "3"
worker_timeout "90"
worker_boot_timeout "120"
worker_shutdown_timeout "150"
threads "4", "8"
workers "2"
port "3000"
