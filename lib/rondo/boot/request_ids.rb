# frozen_string_literal: true

# The ids by which log lines of several programs are put together: X-Request-Id, which proxies send and Rails reads, and
# traceparent, the trace context of the W3C. The setting `request_ids` puts this in front of the application; without it
# nothing looks for them.
# SPDX-License-Identifier: MIT

require "securerandom"

module Rondo
  # Finds the ids of each request, and leaves them in its env for the log.
  # @api private
  class RequestIds
    # What programs send: UUIDs, base64, host:port/id. Rails keeps only letters, digits, - and _.
    ID = %r{\A[\w.~:/+=@-]{1,128}\z}
    # Trace Context, 3.2: version, trace-id, parent-id, trace-flags; later versions may add fields, version 00 may not.
    TRACE =
      /\A(?:00|(?!00|ff)([0-9a-f]{2}))-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(?(1)(?:-.*)?)\z/
    private_constant :ID, :TRACE

    # @param app [#call]
    # @param makes [Boolean] whether a request without a valid id gets one
    def initialize(app, makes)
      @app = app
      @makes = makes
    end

    # @param env [Hash]
    # @return [Array] the response
    def call(env)
      ids = {}
      id = request_id(env) and ids["request_id"] = id
      trace(env["HTTP_TRACEPARENT"], ids)
      env[Reporter::IDS] = ids.freeze unless ids.empty?
      @app.call(env)
    end

    private

    def request_id(env)
      id = env["HTTP_X_REQUEST_ID"]
      return id.dup if id&.match?(ID) # the application may change what it gets

      (env["HTTP_X_REQUEST_ID"] = SecureRandom.uuid).dup if @makes
    end

    def trace(text, ids)
      found = text && TRACE.match(text) or return
      ids["trace_id"] = found[2]
      ids["parent_id"] = found[3]
    end
  end
end
