# frozen_string_literal: true

# SPDX-License-Identifier: MIT

module Up
  # The version of Up! whose interface this is. The gem's own one is that of Rondo.
  VERSION = "0.0.13"
end
