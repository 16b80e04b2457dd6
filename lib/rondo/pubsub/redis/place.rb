# frozen_string_literal: true

# Where connections go: to the one Redis of an address (single.rb), or to a node that is found first (sentinels.rb,
# cluster_nodes.rb). On the engine's thread (pump.rb), which may wait here, by deadlines.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/redis/address"
require "rondo/pubsub/redis/link"

module Rondo
  module PubSub
    class Redis < Engine
      # What all of them share.
      # @api private
      class Place
        # Seconds between attempts at most; more servers may be asked soon than one that is away.
        # @return [Float, nil] nil: as {Outage} has it
        attr_reader :longest_pause
        # @return [String, nil] where the connection goes now, for the log
        attr_reader :found

        # @param address [Address]
        # @param tag [String] of keys; a cluster keeps it at one node
        def self.of(address, tag)
          case address.kind
          when :sentinel then Sentinels.new(address)
          when :cluster then ClusterNodes.new(address, tag)
          else Single.new(address)
          end
        end

        # @param address [Address]
        def initialize(address)
          @address = address
        end

        # Decides where the next connections go.
        # @return [void]
        # @raise [Link::Broken]
        def find; end

        # A connection to there.
        # @param terms [Hash] of {Link#initialize}
        # @return [Link]
        # @raise [Link::Broken]
        def link(**terms, &)
          Link.new(config, **terms, &)
        end

        # Looks from time to time whether this is still the right connection.
        # @param link [Link] from {#link}, for commands
        # @return [void]
        def watch(_link); end

        # @param message [String] of a refusal
        # @return [Boolean] whether another node is to be asked
        def elsewhere?(_message)
          false
        end

        # @return [Boolean] whether another node is the master now
        def moved?
          false
        end

        # @return [Boolean] whether a message can be published for one slot of a cluster only
        def sharded?
          false
        end

        # @param message [String] why the connections were given up
        # @return [void]
        def gone(_message); end

        # @param message [String] of a refusal
        # @return [String] for the log, and for who asked
        def explain(message)
          return message unless message.start_with?("MOVED ", "ASK ")

          "#{message} (this is a node of a Redis Cluster: its address begins with redis+cluster)"
        end

        # @return [String]
        def inspect
          "#<#{self.class} #{@address.name}>"
        end

        private

        def config(*node)
          @address.config(*node)
        rescue Address::Unreadable => e
          raise Link::Refused, e.message
        end
      end
    end
  end
end
