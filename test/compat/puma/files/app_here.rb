# frozen_string_literal: true
# SPDX-License-Identifier: MIT

app { |env| [200, {}, [env["PATH_INFO"]]] }
port 3000
clean_thread_locals
