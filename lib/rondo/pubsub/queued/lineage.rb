# frozen_string_literal: true

# Under which name and numbers a store knows the messages of an engine. A restart by exec hands them on, so a message
# that may have been sent before is written once.
# SPDX-License-Identifier: MIT

require "securerandom"
require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    module Queued
      # Of one engine, and of the one that goes on for it.
      # @api private
      class Lineage
        TEXT = /\A(\h{16}):(\d{1,15})\z/

        # @return [String]
        attr_reader :name

        def initialize
          @name = SecureRandom.hex(8)
          @last = @former = 0
        end

        # @return [Integer] of the next message
        def next_number
          @last += 1
        end

        # Goes on for the one before it, unless it has given a number of its own.
        # @param text [String, nil] {#to_s} of that one; anything else is nobody's
        # @return [void]
        def adopt(text)
          match = TEXT.match(text.to_s)
          return unless match && @last.zero?

          @name = match[1]
          @last = @former = match[2].to_i
        end

        # @return [Boolean] whether there was one before it that gave numbers
        def former?
          @former.positive?
        end

        # @param number [Integer]
        # @return [Boolean] whether the one before it gave that number
        def former_number?(number)
          number.between?(1, @former)
        end

        # @return [Boolean] whether it has given a number of its own
        def begun?
          @last > @former
        end

        # @return [String] name and last number
        def to_s
          "#{@name}:#{@last}"
        end
      end
    end
  end
end
