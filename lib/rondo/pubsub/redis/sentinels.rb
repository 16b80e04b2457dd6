# frozen_string_literal: true

# The master that Redis Sentinels name. They are asked before each pair of connections, each attempt beginning with
# another one: one that knows only an old master does not hold up the others.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/redis/search"

module Rondo
  module PubSub
    class Redis < Engine
      # @api private
      class Sentinels < Search
        private

        def candidates
          @sentinels ||= @address.nodes.dup
          @sentinels.dup.tap { @sentinels.rotate! }
        end

        def ask(sentinel)
          reply = question(sentinel_config(*sentinel), ["SENTINEL", "get-master-addr-by-name", @address.master])
          raise Link::Refused, "no master has the name #{@address.master}" if reply.nil?
          raise Link::Broken, "this is no Sentinel" unless reply.is_a?(Array) && reply.size == 2

          node_of(*reply)
        end

        def sentinel_config(*sentinel)
          @address.sentinel_config(*sentinel)
        rescue Address::Unreadable => e
          raise Link::Refused, e.message
        end

        def lost
          "no Sentinel names the master"
        end

        def found_text
          "the master is #{Address.text(*@node)}"
        end
      end
    end
  end
end
