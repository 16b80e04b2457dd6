# frozen_string_literal: true

# What a stream is to be: as the settings say, and no less than the rules of the history need.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # Of one engine.
      # @api private
      class Wish
        # Seconds in which the server knows a message that comes again.
        WINDOW = 120

        # @param options [Hash] messages, bytes, replicas, storage
        # @return [void]
        # @raise [ConfigurationError]
        def self.check(options)
          wrong = options.find do |name, value|
            next !%w[file memory].include?(value) if name == :storage

            !(value.nil? && name != :replicas) && !(value.is_a?(Integer) && value.positive?)
          end
          raise ConfigurationError, "nats: #{wrong.first} cannot be #{wrong.last.inspect}" if wrong
        end

        # @param messages [Integer, nil] of a channel
        # @param bytes [Integer, nil]
        # @param replicas [Integer]
        # @param storage [String]
        def initialize(messages, bytes, replicas, storage)
          @messages = messages || 0
          @bytes = bytes || -1
          @replicas = replicas
          @storage = storage
          @ttl_ms = nil
        end

        # @param terms [Queued::Terms]
        # @return [Boolean] whether it is more than before
        def keep(terms)
          before = [@messages, @ttl_ms]
          @messages = [@messages, terms.messages].max
          @ttl_ms = terms.ttl_ms.zero? || @ttl_ms&.zero? ? 0 : [@ttl_ms || 0, terms.ttl_ms].max
          before != [@messages, @ttl_ms]
        end

        # @param names [Names]
        # @return [Hash] of a stream that does not exist
        def of_stream(names)
          over({ "name" => names.stream, "subjects" => [names.all_kept], "discard" => "old",
                 "retention" => "limits", "storage" => @storage })
        end

        # @param config [Hash] of the stream
        # @return [Hash] never less than other servers have asked for
        def over(config)
          age = age_over(config["max_age"])
          window = WINDOW * 1_000_000_000
          config.merge("max_msgs_per_subject" => [config["max_msgs_per_subject"].to_i, @messages, 1].max,
                       "max_age" => age, "max_bytes" => @bytes, "num_replicas" => @replicas,
                       "duplicate_window" => age.zero? ? window : [window, age].min)
        end

        private

        # Nanoseconds; 0 is for ever. Without a rule nothing is kept yet.
        def age_over(known)
          return known || (WINDOW * 1_000_000_000) if @ttl_ms.nil?

          @ttl_ms.zero? || known&.zero? ? 0 : [known.to_i, @ttl_ms * 1_000_000].max
        end
      end
    end
  end
end
