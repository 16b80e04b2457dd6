# frozen_string_literal: true

# `rackup -s iodine` and `rails server -u iodine`.
# SPDX-License-Identifier: MIT

require "rackup/handler"
require "iodine"

Rackup::Handler.register :iodine, Iodine::Rack
