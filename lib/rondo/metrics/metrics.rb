# frozen_string_literal: true

# Numbers of the server for other programs: metrics_to. The files beside this one are only loaded if it is set.
# SPDX-License-Identifier: MIT

module Rondo
  # Sends what the scoreboard has.
  # @api private
  module Metrics
    # @param settings [Settings::Resolved]
    # @param board [Scoreboard]
    # @param log [Logger]
    # @param room [Integer] rows i and i + room of the board are of one slot
    # @return [Sender, nil] it sends already; nil: nobody is to get them
    # @raise [ConfigurationError] one line
    def self.open(settings, board, log, room: board.size)
      return unless settings[:metrics_to]

      require "rondo/metrics/sender"
      Sender.start(settings, board, log, room: room)
    end
  end
end
