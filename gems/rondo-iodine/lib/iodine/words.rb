# frozen_string_literal: true

# Lines on standard error, as talkative as `Iodine.verbosity` says, and blocks whose errors end nothing.
# SPDX-License-Identifier: MIT

require "rondo/logger"

module Iodine
  # @api private
  module Base
    # What `verbosity` must be at least.
    ERRORS = 2
    WARNINGS = 3
    INFORMATION = 4

    class << self
      # @param line [String]
      # @return [void]
      def warning(line)
        put("WARNING: #{line}") if Iodine.verbosity >= WARNINGS
      end

      # @param line [String]
      # @return [void]
      def error(line)
        put("ERROR: #{line}") if Iodine.verbosity >= ERRORS
      end

      # Calls what the application gave. Its errors are written, and go no further.
      # @return [Object, nil]
      def guard
        yield
      rescue StandardError, ScriptError => e
        error(e.full_message(highlight: false))
        nil
      end

      # @param block [Proc, nil]
      # @raise [LocalJumpError] there is none
      def need_block(block)
        raise LocalJumpError, "no block given" unless block
      end

      private

      def put(line)
        $stderr.write("#{Rondo::Logger.escape(line)}\n")
      rescue SystemCallError, IOError
        nil # nowhere left to say it
      end
    end
  end
end
