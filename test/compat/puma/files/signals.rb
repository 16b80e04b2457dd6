# frozen_string_literal: true
# SPDX-License-Identifier: MIT

require "etc"
Signal.trap("SIGWINCH") { }
workers Etc.nprocessors
threads 2, 2
preload_app!
bind "tcp://0.0.0.0:80"
lowlevel_error_handler { |error, env| [500, {}, [error.class.name]] }
before_worker_boot { |index| index }
after_worker_shutdown { |handle| handle }
