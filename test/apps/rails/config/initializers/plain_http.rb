# frozen_string_literal: true

# The tests ask without TLS.
# SPDX-License-Identifier: MIT

Rails.application.config.force_ssl = false
