# frozen_string_literal: true

# `rackup -s rondo` and `rails server -u rondo`.
# SPDX-License-Identifier: MIT

require "rackup/handler"
require "rondo/handler"

module Rackup
  # The registry.
  module Handler
    # Rackup's side of Rondo.
    module Rondo
      extend ::Rondo::Handler
    end

    register :rondo, Rondo
  end
end
