# frozen_string_literal: true

# The one place of the version.
# SPDX-License-Identifier: MIT

module Rondo
  # The version of the gem, as RubyGems compares it.
  VERSION = "0.1.0"
end
