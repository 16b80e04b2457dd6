# frozen_string_literal: true

# SPDX-License-Identifier: MIT

# The API of iodine 0.7.60.
module Iodine
  # The version of iodine whose API this is; applications ask for it. The gem's own one is that of Rondo.
  VERSION = "0.7.60"

  # What the library needs for itself.
  # @api private
  module Base
  end
end
