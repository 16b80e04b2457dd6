# frozen_string_literal: true

# The node of a Redis Cluster that has the slot of our keys, which have one hash tag. Both connections go to it. What it
# answers when the slot moves (MOVED, ASK, TRYAGAIN) means to ask again where the slot is.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/queued/engine"
require "rondo/pubsub/redis/search"

module Rondo
  module PubSub
    class Redis < Engine
      # @api private
      class ClusterNodes < Search
        SLOTS = 16_384
        # Nodes that are remembered, beside those of the address.
        KNOWN_MAX = 64
        # The slot has no master now, or its keys are on their way.
        LATER = /\A(CLUSTERDOWN|TRYAGAIN) /
        MOVED = /\A(?:MOVED|ASK) (\d+) (\S*):(\d+)\z/

        # @param address [Address]
        # @param tag [String]
        def initialize(address, tag)
          super(address)
          @tag = tag
          @slot = ClusterNodes.slot(tag)
          @known = []
          @turn = 0
        end

        # @param tag [String]
        # @return [Integer] as Redis Cluster has it: CRC-16/XMODEM
        def self.slot(tag)
          Queued.crc16(tag) % SLOTS
        end

        # @see Place#elsewhere?
        def elsewhere?(message)
          super || LATER.match?(message) || MOVED.match(message)&.[](1) == @slot.to_s
        end

        # @see Place#gone
        def gone(message)
          _, slot, host, port = *MOVED.match(message)
          @hint = node_of(host.empty? ? @node&.first : host, port) if slot == @slot.to_s
        rescue Link::Broken
          nil # the others know, too
        end

        # Redis has that since version 7. All who use a slot are at one node, so they agree.
        # @see Place#sharded?
        def sharded?
          @is_sharded
        end

        # @see Place#explain
        def explain(message)
          return message if elsewhere?(message) || !message.start_with?("MOVED ", "ASK ", "CROSSSLOT ")

          "#{message} (of a Redis Cluster only the node of keys with {#{@tag}} in their names is connected)"
        end

        private

        def checks
          [*super, [%w[INFO server], method(:check_version)]]
        end

        def check_version(reply)
          Link.check(reply, "INFO: ")

          @is_sharded = reply.to_s[/^redis_version:(\d+)/, 1].to_i >= 7
        end

        def candidates
          all = [*@known, *@address.nodes].uniq
          @turn += 1
          [*@hint ? [@hint] : [], *all.rotate(@turn)].uniq.tap { @hint = nil }
        end

        def ask(server)
          reply = question(config(*server), %w[CLUSTER SLOTS])
          raise Link::Broken, "this is no Redis Cluster" unless reply.is_a?(Array)

          rows = reply.select { |row| row in [Integer, Integer, [_, Integer, *], *] }
          remember(rows, server)
          row = rows.find { |from, to, *| @slot.between?(from, to) }
          raise Link::Broken, "no node has slot #{@slot}" unless row

          at(row[2], server)
        end

        # A node that does not know what it is called means the host that was asked.
        def at(node, server)
          host = node[0].to_s
          node_of(host.empty? || host == "?" ? server.first : host, node[1])
        end

        def remember(rows, server)
          nodes = rows.flat_map { |row| row.drop(2) }.first(KNOWN_MAX)
          @known = nodes.filter_map { |node| at(node, server) if node in [_, Integer, *] }.uniq
        end

        def lost
          "no node of the cluster says where slot #{@slot} is"
        end

        def found_text
          "slot #{@slot} is at #{Address.text(*@node)}"
        end
      end
    end
  end
end
