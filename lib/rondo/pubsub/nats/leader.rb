# frozen_string_literal: true

# What the leader of a stream has. Consumers may read at a replica: it has the newest messages a moment later, and may
# lack the oldest ones. Used by stream.rb and copies.rb, for streams with replicas.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/nats/answers"
require "rondo/pubsub/nats/link"

module Rondo
  module PubSub
    class Nats < Engine
      # On one connection.
      # @api private
      class Leader
        NO_MESSAGE = 10_037

        # @param requests [Requests]
        # @param names [Names]
        def initialize(requests, names)
          @requests = requests
          @names = names
        end

        # @param channel [String]
        # @yieldparam oldest [Integer, nil] number of its oldest message; nil: there is none
        # @yieldparam newest [Integer, nil]
        # @return [void]
        def ends(channel)
          subject = @names.kept(channel)
          get(last_by_subj: subject) do |newest|
            next yield nil, nil unless newest

            get(seq: 1, next_by_subj: subject) { |oldest| yield oldest, newest }
          end
        end

        private

        def get(words)
          @requests.ask("$JS.API.STREAM.MSG.GET.#{@names.stream}", words) do |answer|
            error = answer["error"]
            raise Link::Refused, Answers.text_of(error) if error && error["err_code"] != NO_MESSAGE

            number = answer["message"].to_h["seq"]
            raise Link::Refused, "JetStream: an answer without a message" unless error || number.is_a?(Integer)

            yield number
          end
        end
      end
    end
  end
end
