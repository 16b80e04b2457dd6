# frozen_string_literal: true

# SPDX-License-Identifier: MIT

module Greeting
  TEXT = "the first"
end
