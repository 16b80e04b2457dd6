# frozen_string_literal: true

# `rackup -s iodine` of Rack 2, and what the command calls.
# SPDX-License-Identifier: MIT

require "iodine" unless defined?(Iodine::VERSION)

module Iodine
  # The handler.
  module Rack
    # @param app [#call]
    # @param options [Hash] :Port, :Host
    # @return [true] when the server has stopped
    def self.run(app, options = {})
      Iodine.listen({ service: :http, handler: app, port: options[:Port], address: options[:Host] })
      Iodine.start
      true
    end

    # @return [void]
    def self.shutdown
      Iodine.stop
    end

    # iodine's sign that this file was loaded.
    IODINE_RACK_LOADED = true
  end
end

ENV["RACK_HANDLER"] ||= "iodine"

if defined?(Rack::Handler) && Rack::Handler.respond_to?(:register)
  Rack::Handler.register("iodine", "Iodine::Rack")
  Rack::Handler.register("Iodine", "Iodine::Rack")
end
