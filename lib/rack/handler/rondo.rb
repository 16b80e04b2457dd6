# frozen_string_literal: true

# The handler for Rack 2, where Rack itself had `rackup`.
# SPDX-License-Identifier: MIT

require "rack"
require "rack/handler"
require "rondo/handler"

module Rack
  # The registry.
  module Handler
    # Rack 2's side of Rondo.
    module Rondo
      extend ::Rondo::Handler
    end

    register :rondo, "Rack::Handler::Rondo" if respond_to?(:register)
  end
end
