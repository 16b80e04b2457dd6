# frozen_string_literal: true

# Finds the stream, or makes it, and changes it where the rules need more. wish.rb says what they need.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/nats/answers"
require "rondo/pubsub/nats/link"

module Rondo
  module PubSub
    class Nats < Engine
      # On one connection.
      # @api private
      class Setup
        NO_STREAM = 10_059

        # @param requests [Requests]
        # @param names [Names]
        # @param wish [Wish]
        def initialize(requests, names, wish)
          @requests = requests
          @names = names
          @wish = wish
        end

        # @yieldparam answer [Hash] with the state of a stream that is as it should be
        # @return [void]
        def find(&done)
          ask("INFO") do |answer|
            error = answer["error"]
            next compare(answer, &done) unless error
            raise Link::Refused, Answers.text_of(error) unless error["err_code"] == NO_STREAM

            save("CREATE", @wish.of_stream(@names), &done)
          end
        end

        private

        def compare(answer, &done)
          config = config_of(answer)
          better = @wish.over(config)
          better == config ? done.call(answer) : save("UPDATE", better, &done)
        end

        def save(verb, config)
          ask(verb, config) do |answer|
            raise Link::Refused, Answers.text_of(answer["error"]) if answer["error"]

            config_of(answer)
            yield answer
          end
        end

        def config_of(answer)
          config = answer["config"]
          raise Link::Refused, "JetStream: an answer without a stream" unless config.is_a?(Hash)

          config
        end

        def ask(verb, words = "", &)
          @requests.ask("$JS.API.STREAM.#{verb}.#{@names.stream}", words, &)
        end
      end
    end
  end
end
