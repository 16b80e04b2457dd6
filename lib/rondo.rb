# frozen_string_literal: true

# What `require "rondo"` gives: Rondo::Server and its errors. It parses no command line, sets no
# trap and starts nothing.
# SPDX-License-Identifier: MIT

require "rondo/version"
require "rondo/env"
begin
  require "rondo/rondo"
rescue LoadError => e
  raise unless e.path == "rondo/rondo" # it is there, and the system cannot load it

  require "rondo/not_compiled"
  raise Rondo::NotCompiled, nil, [], cause: nil
end
require "rondo/config/address"
require "rondo/boot/port_holder"
require "rondo/logger"
require "rondo/error_page"
require "rondo/static_folder"
require "rondo/reporter"
require "rondo/identity"
require "rondo/origins"
require "rondo/upgrades"
require "rondo/pubsub"
require "rondo/server"
require "rondo/capybara" if defined?(Capybara)

# An application server for Rack.
module Rondo
  # A configuration that cannot be used: a message of one line, naming file and line.
  class ConfigurationError < Error; end
end
