# frozen_string_literal: true

# What JetStream answers.
# SPDX-License-Identifier: MIT

require "time"
require "rondo/pubsub/nats/link"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      module Answers
        # A message that was not stored, also because a limit of the stream does not allow it.
        NOT_STORED = 10_077

        # @param error [Hash] of an answer
        # @return [String]
        def self.text_of(error)
          return "JetStream does not answer: it is not enabled there, or has no leader" if error["none"]

          "JetStream: #{Link.line(error["description"].to_s)}"
        end

        # @param answer [Hash] to a message
        # @return [Hash, nil] why the stream does not take it; nil: it has it
        # @raise [Link::Refused] no stream has answered
        def self.refusal(answer)
          error = answer["error"]
          return if error.nil? && answer["seq"].is_a?(Integer)
          raise Link::Refused, "JetStream: an answer that is none" unless error.is_a?(Hash)
          raise Link::Refused, text_of(error) if error["none"]

          error
        end

        # @param refusal [Hash, nil] of {refusal}
        # @return [Boolean] whether the stream will take the message, but not now
        def self.later?(refusal)
          return false if refusal.nil? || refusal["code"].to_i < 500

          !(refusal["err_code"] == NOT_STORED && refusal["description"].to_s.match?(/exceed/i))
        end

        # @param text [String] as JetStream has times
        # @return [Integer] microseconds
        def self.time(text)
          time = Time.iso8601(text.to_s)
          [(time.to_i * 1_000_000) + time.usec, 0].max
        rescue ArgumentError
          0
        end
      end
    end
  end
end
