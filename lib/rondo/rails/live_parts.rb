# frozen_string_literal: true

# What an action has written and nobody has sent yet; in place of the queue of ActionController::Live::Buffer.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    # Parts of a body on the way from the thread that writes them. Somebody pops them one by one, as Rails does it, or
    # the server's stream is given: then they go there at once, and the writer waits for a client that reads slowly.
    # @api private
    class LiveParts
      # @param most [Integer, nil] parts that may wait to be popped; nil: any number
      # @param gone [#call] called when a client has left
      # @param sent [#call] called when everything is written to the stream
      def initialize(most, gone:, sent:)
        @most = most
        @gone = gone
        @sent = sent
        @parts = []
        @stream = nil
        @lock = Mutex.new
        @changed = ConditionVariable.new
      end

      # Waits for room.
      # @param part [String, nil] nil: it was the last one
      # @return [self]
      def push(part)
        stream = @lock.synchronize do
          @changed.wait(@lock) until @stream || room?(part)
          keep(part) unless @stream
          @stream
        end
        write(stream, part) if stream
        self
      end
      alias << push

      # Waits for a part.
      # @return [String, nil] nil: there is none left
      def pop
        @lock.synchronize do
          @changed.wait(@lock) while @parts.empty?
          @changed.broadcast
          @parts.shift
        end
      end

      # @return [self] without parts; those who wait for room have it
      def clear
        @lock.synchronize do
          @parts.clear
          @changed.broadcast
        end
        self
      end

      # From now on parts go to the stream, after those that wait.
      # @param stream [Rondo::Stream]
      # @return [void]
      def hand_to(stream)
        @lock.synchronize do
          write(stream, @parts.shift) until @parts.empty?
          @stream = stream
          @changed.broadcast
        end
      end

      # @return [Boolean] whether a stream was given
      def handed?
        !@stream.nil?
      end

      private

      # The end always has room: who writes it may hold what another one needs to make some.
      def room?(part)
        @most.nil? || part.nil? || @parts.size < @most
      end

      def keep(part)
        @parts << part
        @changed.broadcast
      end

      def write(stream, part)
        if part.nil?
          stream.close
          @sent.call
        else
          stream.write(part)
        end
      rescue IOError
        @gone.call
      end
    end
  end
end
