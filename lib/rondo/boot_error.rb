# frozen_string_literal: true

# What is said of an exception that left somebody else's code at boot: the configuration file
# (configuration.rb) or the application (application.rb), each of which adds the place.
# SPDX-License-Identifier: MIT

module Rondo
  # Words for whatever was raised, `exit` included: a server that is told to exit by what it loads
  # has not started, whatever status that asked for.
  module BootError
    # @param error [Exception]
    # @return [String] one line
    def self.words(error)
      return "it ended the process at boot (exit #{error.status})" if error.is_a?(SystemExit)

      "#{error.message.lines.first.to_s.chomp} (#{error.class})"
    end
  end
end
