# frozen_string_literal: true

# Several applications in one server: each listener of the verb `listen` has its own. The core knows by its number which
# one a request is for (ext/rondo/request/request.h).
# SPDX-License-Identifier: MIT

module Rondo
  # What the core calls in place of the application, if there are several.
  # @api private
  class Sites
    # Numbers are 16 bits.
    MOST = 65_535

    # @param core [Server::Core]
    # @param app [#call, nil] that of the server, which is number 0
    def initialize(core, app)
      @core = core
      @apps = [app]
    end

    # @param app [#call]
    # @return [Integer] its number
    # @raise [ArgumentError] it is no application, or there are too many
    def number(app)
      known = @apps.index { |other| other.equal?(app) }
      return known if known
      raise ArgumentError, "the application does not respond to call" unless app.respond_to?(:call)
      raise ArgumentError, "there are too many applications" if @apps.size > MOST

      @apps << app
      @apps.size - 1
    end

    # @param env [Hash]
    # @return [Array] the response
    def call(env)
      @apps[@core.site].call(env)
    end
  end
end
