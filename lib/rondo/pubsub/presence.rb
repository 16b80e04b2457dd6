# frozen_string_literal: true

# Who is present in a room, over workers and machines: what an application calls. docs/PRESENCE.md is the manual,
# docs/decisions/0068-presence.md has the reasons. Nothing of this is loaded before it is used.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/presence/limits"
require "rondo/pubsub/presence/node"

module Rondo
  # Ids of clients by room, as all processes of all servers with the same engine know them.
  module Presence
    # A room more than this process may follow, or no server runs in this process.
    class Unavailable < Error
    end

    # A block for a room.
    # @api private
    Listener = Struct.new(:kind, :block, :once)

    # Seconds for which a room that was listed is followed.
    # @api private
    LISTED = 60

    @mutex = Mutex.new
    @limits = Limits.default.freeze
    @secret = nil
    @listeners = {}
    @node = nil

    class << self
      # @return [Limits]
      # @api private
      attr_reader :limits

      # Sets limits, for processes whose server begins later; best in config.ru.
      # @param secret [String, nil] part of the names of the internal channels, the same in all processes; by default
      #   RONDO_PRESENCE_SECRET, or SECRET_KEY_BASE, or the secret of Rails
      # @param limits [Hash{Symbol => Numeric}] grace: seconds until an id without a connection has left (2); silence:
      #   seconds after which a process that is not heard is dropped (4); rooms_per_client (100); rooms that a process
      #   follows (10,000); replica_bytes (64 MiB); info_bytes of one info as JSON (4096)
      # @return [void]
      # @raise [ArgumentError, TypeError]
      def configure(secret: nil, **limits)
        unless secret.nil? || (secret.is_a?(String) && secret.bytesize.between?(1, 4096))
          raise ArgumentError, "the secret of Rondo::Presence must be a String of 1 to 4096 bytes"
        end

        @mutex.synchronize do
          @limits = @limits.change(**limits)
          @secret = secret if secret
        end
      end

      # Who is in the room, also those of other processes and machines. A process that does not follow the room yet asks
      # the others and waits for their answers; for a minute it then knows by itself. Any callback, request or task may
      # call it: the loop goes on meanwhile.
      # @param room [String, Symbol]
      # @param timeout [Numeric] seconds to wait at most; then those who are known by then are returned
      # @return [Array<Array(String, Object)>] id and info, as JSON gives it back: keys are Strings; in no order
      # @raise [ArgumentError, TypeError]
      # @raise [Unavailable] no server runs in this process, or it follows too many rooms
      def list(room, timeout: 1)
        name = Arguments.room(room)
        unless timeout.is_a?(Numeric) && timeout.real? && (0..60).cover?(timeout)
          raise ArgumentError, "timeout must be from 0 to 60 seconds"
        end

        entries = node!.list(name, timeout) or raise Unavailable, "this process follows #{limits.rooms} rooms already"
        entries.map { |id, info| [id, parse(info)] }
      end

      # The block is called when an id comes into the room, once for all its connections. The first block of a room is
      # also called for those who are there already. Each process in which it was registered calls it, one call after
      # the other.
      # @param room [String, Symbol]
      # @param once [Boolean] only the process that {first?} calls it
      # @yieldparam id [String]
      # @yieldparam info [Object]
      # @return [void]
      # @raise [ArgumentError, TypeError]
      def on_join(room, once: false, &block)
        listen(room, :join, once, block)
      end

      # The block is called when an id has had no connection for `grace` seconds, wherever that was.
      # @param room [String, Symbol]
      # @param once [Boolean] only the process that {first?} calls it
      # @yieldparam id [String]
      # @yieldparam info [Object] the last one
      # @return [void]
      # @raise [ArgumentError, TypeError]
      def on_leave(room, once: false, &block)
        listen(room, :leave, once, block)
      end

      # @return [Boolean] whether this is the one process of all with presence that blocks with `once` run in: while
      #   processes come and go there may be none or two for a moment
      def first?
        node&.first? || false
      end

      # @api private
      # @return [Boolean]
      def join(client, room, id, info)
        name, id, info = Arguments.room(room), Arguments.id(id), Arguments.info(info, limits.info_bytes)
        node&.join(client, name, id, info) || false
      end

      # @api private
      # @return [Boolean]
      def leave(client, room)
        name = Arguments.room(room)
        @node&.leave(client, name) || false
      end

      # The connection of a client that had joined has ended.
      # @api private
      # @return [void]
      def ended(client)
        @node&.leave_all(client)
      end

      # @api private
      # @return [Array<Listener>]
      def listeners(room)
        @listeners[room] || []
      end

      # @api private
      # @return [Object]
      def parse(info)
        info && JSON.parse(info)
      rescue JSON::ParserError
        nil # another program sent it
      end

      # A server runs in this process now. Without blocks presence begins with the first call that needs it.
      # @api private
      # @param core [Server::Core]
      # @return [void]
      def begin_at(core)
        @mutex.synchronize { start(core) if @listeners.any? }
      end

      # It has ended.
      # @api private
      # @return [void]
      def end_at(core)
        node = @mutex.synchronize do
          next unless @node&.core.equal?(core)

          ended, @node = @node, nil
          ended
        end
        node&.stop
      end

      private

      def listen(room, kind, once, block)
        raise ArgumentError, "on_#{kind} needs a block" unless block

        name = Arguments.room(room)
        @mutex.synchronize do
          @listeners = @listeners.merge(name => [*@listeners[name], Listener.new(kind, block, once ? true : false)])
        end
        node&.listen(name)
        nil
      end

      # @return [Node, nil] nil: no server runs in this process
      def node
        node = @node
        return node if node&.here?

        @mutex.synchronize { start(PubSub.core) if PubSub.serving? }
      end

      def node!
        node or raise Unavailable, "no server runs in this process, so it does not know who is present"
      end

      # The newest server of this process has it; a child that was forked has none of its parent.
      def start(core)
        return @node if @node&.here? || core.nil?

        @node = Node.new(core, @limits, secret)
        @listeners.each_key { |name| @node.listen(name) }
        @node.start
      end

      def secret
        @secret || ENV["RONDO_PRESENCE_SECRET"] || ENV["SECRET_KEY_BASE"] || secret_of_rails
      end

      def secret_of_rails
        application = ::Rails.application if defined?(::Rails) && ::Rails.respond_to?(:application)
        application.secret_key_base if application.respond_to?(:secret_key_base)
      end
    end

    PubSub.presence = self
  end
end
