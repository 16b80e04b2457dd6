# frozen_string_literal: true

# What the log of plugins (launcher_log.rb) and Puma::LogWriter (module/log_writer.rb) say in the same way.
# SPDX-License-Identifier: MIT

module Rondo
  # For classes with `log`, `debug?` and `unknown_error`.
  # @api private
  module PumaLogErrors
    # @param text [String, nil] or a block
    # @return [void]
    def debug(text = nil)
      log("% #{text || yield}") if debug?
    end

    # @param error [Exception]
    # @param request [Object, nil]
    # @param text [String]
    # @return [void]
    def debug_error(error, request = nil, text = "")
      unknown_error(error, request, text) if debug?
    end

    # Takes what `unknown_error` takes.
    # @return [void]
    def connection_error(...)
      unknown_error(...)
    end
    alias parse_error connection_error
    alias ssl_error connection_error
  end
end
