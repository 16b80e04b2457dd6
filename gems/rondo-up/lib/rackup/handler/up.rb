# frozen_string_literal: true

# `rackup -s up`.
# SPDX-License-Identifier: MIT

require "rackup/handler"
require "rondo/handler"
require "up"

module Rackup
  # The registry.
  module Handler
    # Rackup's side of Up!: the handler of Rondo under another name.
    module Up
      extend ::Rondo::Handler
    end

    register :up, Up
  end
end
