# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: PORT=9300

port ENV["PORT"] if ENV["PORT"]
app { |_env| [200, {}, ["from the file"]] }
lowlevel_error_handler { |_error| [500, {}, ["broken"]] }
