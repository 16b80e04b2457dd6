# frozen_string_literal: true

# The WebSocket of a connection of Action Cable: the handler of a connection of the server (docs/PUSH.md), and what
# ActionCable::Connection::WebSocket talks to. Its callbacks come one after the other, on application threads, and
# Rails' executor is around what the application does in them.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # Takes the place of ActionCable::Connection::ClientSocket.
      class Socket
        # Held only to prepare for the first event of a connection.
        PREPARING = Mutex.new
        private_constant :PREPARING

        # @return [String, nil] the subprotocol that was chosen
        attr_reader :protocol
        # @return [Client, nil] nil before the connection is open
        attr_reader :client
        # @return [History, nil] of a client that can go on where it was
        attr_reader :history
        # @return [Object] what the command that runs now says of history
        attr_accessor :history_request
        # @return [Boolean] whether the application leaves encoding and heartbeats of this connection as Rails has them
        attr_reader :plain

        # @param env [Hash] of a request that can be upgraded
        # @param target [ActionCable::Connection::Base]
        # @param protocols [Array<String>] those of Action Cable
        def initialize(env, target, protocols)
          @env = env
          @target = target
          protocols = [History::PROTOCOL, *protocols] if Cable.history
          @protocol = env["HTTP_SEC_WEBSOCKET_PROTOCOL"].to_s.split(/\s*,\s*/).find { |name| protocols.include?(name) }
          @history = History.new(self) if @protocol == History::PROTOCOL
          @streams = nil
          @jobs = nil
        end

        # @return [Array(Integer, Hash, Array)]
        def rack_response
          @env["rack.upgrade"] = self
          @env = nil
          [101, @protocol ? { "sec-websocket-protocol" => @protocol } : {}, []]
        end

        # @return [Boolean]
        def alive?
          !@closing && !@client.nil? && @client.open?
        end

        # @param message [String, Numeric, Array<Integer>] text, or bytes
        # @return [Boolean] false: it is closed, or was never open
        def transmit(message)
          return false unless @client

          case message
          when String then @client.write(message)
          when Numeric then @client.write(message.to_s)
          when Array then @client.write(message.pack("C*"))
          else false
          end
        end

        # @param code [Integer, nil]
        # @param reason [String, nil]
        # @return [void]
        # @raise [ArgumentError] for a code that only servers may send
        def close(code = nil, reason = nil)
          code ||= 1000
          unless code == 1000 || (3000..4999).cover?(code)
            raise ArgumentError, "the code must be 1000, or from 3000 to 4999, not #{code}"
          end

          @closing = true
          @client&.close(code, reason || "")
        end

        # The application could not open it.
        # @return [void]
        def abort
          @closing = true
          @client&.close(1011, "")
        end

        # Calls the block as one more event of the connection.
        # @yield
        # @return [Boolean] false: the connection is closed, or has as many events waiting as it may
        def perform(&block)
          return false unless alive?

          jobs = @jobs || prepare_jobs or return false
          jobs << block
          Cable.publish(@jobs_name, "")
        end

        # Messages of a name go straight to the client from now on.
        # @param member [FanOut::Member] is told when the connection ends
        # @return [Boolean] false: the client is closed, or at its limit
        def join(member)
          (@streams ||= []) << member
          @client.subscribe(member.name) ? true : false
        end

        # @param member [FanOut::Member]
        # @return [void]
        def leave(member)
          @streams&.delete(member)
          @client.unsubscribe(member.name)
        end

        # @param client [Client]
        # @return [void]
        def on_open(client)
          @client = client
          @plain = @target.plain_wire?
          @target.on_open
        end

        # @param message [String]
        # @return [void]
        def on_message(_client, message)
          @target.on_message(message) if alive?
        end

        # @return [void]
        def on_shutdown(_client)
          @target.transmit(type: "disconnect", reason: "server_restart", reconnect: true) if alive?
        end

        # @param client [Client]
        # @return [void]
        def on_close(client)
          @closing = true
          @target.on_close(client.close_reason, client.close_code)
        ensure
          # What the application has not left, because it raised.
          @streams&.dup&.each(&:leave)
          @jobs&.clear
        end

        private

        # Several threads may have the first event at once.
        # @return [Thread::Queue, nil] nil: the client has gone, or has as many subscriptions as it may
        def prepare_jobs
          PREPARING.synchronize do
            next @jobs if @jobs

            jobs = Thread::Queue.new
            name = Cable.new_name
            next unless @client.subscribe(name) { jobs.shift(true).call unless jobs.empty? }

            @jobs_name = name
            @jobs = jobs # last: who sees it needs the name
          end
        end
      end

      # Of ActionCable::Connection::WebSocket: which kind of socket a request gets.
      module Upgrading
        # @param env [Hash]
        # @param event_target [ActionCable::Connection::Base]
        # @param event_loop [EventLoop]
        # @param protocols [Array<String>]
        def initialize(env, event_target, event_loop, protocols: ::ActionCable::INTERNAL[:protocols])
          if env["rack.upgrade?"] == :websocket
            @websocket = Socket.new(env, event_target, protocols)
          else
            super
          end
        end

        # @return [Socket, nil] nil: a socket of Rails
        def of_server
          @websocket if @websocket.is_a?(Socket)
        end
      end
    end
  end
end
