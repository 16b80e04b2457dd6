# frozen_string_literal: true

# The one Redis of an address. The address may be a name, or a proxy, in front of several servers of which one is the
# master. When two change places, Redis keeps the connections, and a replica takes PUBLISH: who stayed there would not
# be heard by who connected later. So a master is asked what it is (ROLE), again and again.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/redis/place"

module Rondo
  module PubSub
    class Redis < Engine
      # A replica from the start is left as it is, and so is a server that does not say.
      # @api private
      class Single < Place
        # Seconds in which the address should lead to a master again. After that it is one server that stays a replica:
        # all who are connected there hear each other.
        SWITCH = 60.0
        ROLE = %w[ROLE].freeze
        LOST = "it has become a replica"

        # @see Place#find
        def find
          @found = nil
        end

        # @see Place#link
        def link(**terms, &)
          Link.new(config, **terms, checks: checks, &)
        end

        # @see Place#watch
        def watch(link)
          link.ask_again(ROLE) do |reply|
            next reply.passes? if reply.is_a?(Replies::Refusal)

            look(reply)
            @was_master
          end
        end

        private

        # Commands on a new connection, before anything is sent.
        def checks
          @was_master ? [[ROLE, method(:check)]] : []
        end

        def check(reply)
          Link.check(reply) if reply.is_a?(Replies::Refusal) && reply.passes?
          look(reply)
        end

        def look(reply)
          case reply
          in ["master", *] then master!
          in ["slave", *] then replica!
          else nil # it does not say
          end
        end

        def master!
          @was_master = true
          @lost_at = nil
        end

        def replica!
          return unless @was_master

          @lost_at ||= now
          raise Link::Broken, LOST if now - @lost_at < SWITCH

          @was_master = false
          @lost_at = nil
          @found = "it is a replica now"
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end
      end
    end
  end
end
