# frozen_string_literal: true

# The one place of the version.
# SPDX-License-Identifier: MIT

module Rondo
  VERSION = "0.1.0"
end
