# frozen_string_literal: true

# The log of the server as plugins write to it.
# SPDX-License-Identifier: MIT

require "rondo/puma/log_errors"

module Rondo
  # The methods of Puma::LogWriter over a {Logger}.
  # @api private
  class LauncherLog
    include PumaLogErrors

    # @param log [Logger]
    def initialize(log)
      @log = log
    end

    # @param text [String]
    # @return [void]
    def log(text)
      @log.say(text.to_s)
    end

    # @param text [String]
    # @return [void]
    def write(text)
      @log.say(text.to_s.chomp)
    end

    # @param text [String]
    # @return [String]
    def format(text)
      text
    end

    # @return [Boolean]
    def debug?
      ENV.key?("PUMA_DEBUG")
    end

    # @param text [String]
    # @raise [SystemExit] always, as Puma's
    def error(text)
      @log.error("ERROR: #{text}")
      exit 1
    end

    # @param error [Exception]
    # @param _request [Object, nil]
    # @param text [String]
    # @return [void]
    def unknown_error(error, _request = nil, text = "Unknown error")
      @log.error("#{text}: #{error.full_message(highlight: false)}")
    end

    # @return [IO]
    def stdout
      $stdout
    end

    # @return [IO]
    def stderr
      $stderr
    end
  end
end
