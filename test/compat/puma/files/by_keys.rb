# frozen_string_literal: true
# SPDX-License-Identifier: MIT

@options[:workers] = 2
@options[:preload_app] = true
@options[:own_setting] = { "a" => 1 }
(@options[:binds] ||= []) << "tcp://127.0.0.1:4567"
tag "workers: #{get(:workers)}"
