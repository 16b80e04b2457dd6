# frozen_string_literal: true

# The interface of Up! 0.0.13 over Rondo: `Up.publish`, and the client that handlers get. cli.rb is the command.
# SPDX-License-Identifier: MIT

require "rondo"
require "up/version"

# Up!'s names.
module Up
  # What callbacks get: Rondo's client has all methods of Up!'s.
  Client = Rondo::Client

  # @param channel [String, Symbol]
  # @param message [String, Hash, Array] a Hash or an Array goes as JSON
  # @return [Boolean] whether it is on its way
  # @raise [ArgumentError, TypeError]
  def self.publish(channel, message)
    Rondo.publish(channel, message)
  end
end
