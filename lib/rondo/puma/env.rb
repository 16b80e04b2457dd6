# frozen_string_literal: true

# Keys of Puma in the env, for applications that may ask for them: the module Puma is loaded when the server starts, or
# the settings `puma_env` or `max_io_threads` say so. For others nothing of this is on the way of a request.
# SPDX-License-Identifier: MIT

require "rondo/puma/library"
require "rondo/puma/module/socket"

module Rondo
  # Adds the keys, and calls the application.
  # @api private
  class PumaEnv
    SOFTWARE = "rondo #{VERSION}".freeze
    private_constant :SOFTWARE

    # Calls what is in rack.after_reply.
    AfterReply = Struct.new(:replies) do
      # @raise what the first of them has raised, when all have been called
      def call(*)
        failure = nil
        replies.each do |reply|
          reply.call
        rescue StandardError => e
          failure ||= e
        end
        raise failure if failure
      end
    end
    private_constant :AfterReply

    # @param app [#call]
    def initialize(app)
      @app = app
    end

    # @param env [Hash]
    # @return [Array] the response
    def call(env)
      replies = []
      env["rack.after_reply"] = replies
      env["puma.config"] = PumaLibrary.configuration
      env["SERVER_SOFTWARE"] = SOFTWARE
      connection = env["rack.hijack"]
      env["puma.socket"] = PumaSocket.new(connection)
      env["puma.mark_as_io_bound"] = -> { connection.mark_as_io_bound }
      env["rack.response_finished"] << AfterReply.new(replies)
      @app.call(env)
    end
  end
end
