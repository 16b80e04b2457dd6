# frozen_string_literal: true
# SPDX-License-Identifier: MIT

rack_url_scheme "https"
raise_exception_on_sigterm false
port 3000
