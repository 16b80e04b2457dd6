# frozen_string_literal: true

# Engines carry messages between processes. Every server has two of them.
# SPDX-License-Identifier: MIT

module Rondo
  module PubSub
    # The interface of an engine; whatever answers these three may be one, this class or not.
    #
    # It is notified of the first and of the last subscriber of each channel, once per channel, never two
    # calls at once. What comes from outside it gives to {PROCESS}.publish. None of the three may wait.
    class Engine
      # The first subscriber is there.
      # @param channel [String]
      # @param is_pattern [Boolean] a glob as of Redis
      # @return [void]
      def subscribe(channel, is_pattern); end

      # The last subscriber is gone.
      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def unsubscribe(channel, is_pattern); end

      # @param channel [String]
      # @param message [String]
      # @return [Boolean] whether it will be sent
      def publish(channel, message)
        raise NotImplementedError, "#{self.class} must define publish(channel, message)"
      end

      # Whether {#publish} takes a block and calls it once, on any thread: with the id of a message that the engine
      # keeps, true for another one that it has, false for one that it refused.
      # @return [Boolean]
      def confirms?
        false
      end

      # Sends the published messages, as far as possible.
      # @param seconds [Numeric] to wait at most
      # @return [Integer] messages that were not sent
      def flush(seconds) # rubocop:disable Lint/UnusedMethodArgument
        0
      end

      # The end of the process, or of the engine.
      # @param seconds [Numeric] for {#flush}
      # @return [void]
      def close(seconds = 0); end
    end
  end
end
