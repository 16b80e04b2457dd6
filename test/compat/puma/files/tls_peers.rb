# frozen_string_literal: true
# SPDX-License-Identifier: MIT

pem = "/tmp/pair.pem"
ssl_bind "0.0.0.0", 9292, cert: pem, key: pem, verify_mode: "peer", ca: pem
lowlevel_error_handler { |_error| [500, {}, ["broken"]] }
app { |_env| [200, {}, ["from the file"]] }
