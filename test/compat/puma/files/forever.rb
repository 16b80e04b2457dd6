# frozen_string_literal: true
# SPDX-License-Identifier: MIT

force_shutdown_after :immediately
port 3000
raise_exception_on_sigterm false
