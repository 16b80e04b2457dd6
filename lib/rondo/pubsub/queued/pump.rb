# frozen_string_literal: true

# The thread of an engine with a connection: how it begins, is woken and ends. Who includes it has `turn`, and `links`
# that may be nil.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    module Queued
      # Runs until it is told to end.
      # @api private
      module Pump
        # @return [void]
        def run
          turn until @ended
        ensure
          close
        end

        # From any thread: there is something to do.
        # @return [void]
        def wake
          @wake.write_nonblock(".", exception: false)
        rescue IOError
          nil # it has ended
        end

        # @return [void]
        def end
          @ended = true
          wake
        end

        # Also for a process that was forked meanwhile: closes the descriptors, says nothing.
        # @return [void]
        def close
          [*links, @waker, @wake].each { |each| each&.close }
        end

        # @return [String] without credentials, addresses and what waits
        def inspect
          "#<#{self.class} #{links.compact.map(&:inspect).join(", ")}>"
        end

        private

        def open_waker
          @waker, @wake = IO.pipe
          @ended = false
        end
      end
    end
  end
end
