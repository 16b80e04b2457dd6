# frozen_string_literal: true

# ActionCable::Server::Base and its pool: no threads of their own, one heartbeat for all connections.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # Of ActionCable::Server::Base.
      module Server
        # @return [ActionCable::Connection::StreamEventLoop] from Rails 8.2 on there is an executor for the rest
        def event_loop
          return super if Cable.next?

          @event_loop || mutex.synchronize { @event_loop ||= EventLoop.new }
        end

        # @return [FanOut] of the streams of this process
        def fan_out
          @fan_out || mutex.synchronize { @fan_out ||= FanOut.new(self) }
        end

        # As {FanOut#join}, also while this server restarts.
        # @param broadcasting [String]
        # @param identifier [String, nil]
        # @param socket [Socket, TurboSource::Stream]
        # @return [FanOut::Member]
        # @raise [Error] the client is closed, or at its limit of subscriptions
        def join_stream(broadcasting, identifier, socket)
          loop do
            member = fan_out.join(broadcasting, identifier, socket)
            return member if member
          end
        end

        # Closes all connections, whose clients come back, and forgets what they were subscribed to: classes of the
        # application are among it.
        # @return [void]
        def restart
          before = connections
          super
          close_streams
          # Who came meanwhile may listen to the adapter that has ended.
          (connections - before).each { |connection| connection.close(reason: "server_restart") }
          Cable.publish(TurboSource::RESTART, "") if defined?(TurboSource)
        end

        # @return [Array<ActionCable::Connection::Base>]
        def connections
          mutex.synchronize { connection_table.keys }
        end

        # @param connection [ActionCable::Connection::Base] is welcomed
        # @return [void]
        def add_connection(connection)
          mutex.synchronize { connection_table[connection] = true }
          socket = connection.of_server if connection.respond_to?(:of_server)
          socket.client.subscribe(HEARTBEAT) if socket&.plain
        end

        # @param connection [ActionCable::Connection::Base] was closed
        # @return [void]
        def remove_connection(connection)
          mutex.synchronize { connection_table.delete(connection) }
        end

        # Once for each server that runs in this process.
        # @return [void]
        def setup_heartbeat_timer
          core = PubSub.core or return super
          return if @beating.equal?(core)

          mutex.synchronize do
            next if @beating.equal?(core)

            @beating = core
            Rondo.run_every(::ActionCable::Server::Connections::BEAT_INTERVAL * 1000) { beat }
          end
        end

        private

        # What joins from now on gets the next adapter.
        def close_streams
          mutex.synchronize do
            closed = @fan_out
            @fan_out = nil
            closed&.close
          end
        end

        def connection_table
          @connection_table ||= {}.compare_by_identity
        end

        # One message for all of them, but for those that make their own.
        def beat
          Cable.publish(HEARTBEAT, %({"type":"ping","message":#{Time.now.to_i}}))
          connections.each { |connection| connection.beat unless connection.of_server&.plain }
        end
      end

      # Of ActionCable::Server::Base, from Rails 8.2 on.
      module NextServer
        # @return [Executor]
        def executor
          @executor || mutex.synchronize { @executor ||= Executor.new(max_size: config.executor_pool_size) }
        end

        # @return [Hash{Integer => ActionCable::Connection::Base}]
        def connections_map
          connections.to_h { |connection| [connection.object_id, connection] }
        end
      end

      # Of ActionCable::Server::Worker: what waits for a thread of its pool becomes an event of the connection.
      module Worker
        # @param receiver [Object]
        # @param method [Symbol]
        # @param connection [ActionCable::Connection::Base]
        # @return [Boolean, Object] false: the connection is closed, or has as many events waiting as it may
        def async_invoke(receiver, method, *args, connection: receiver, &block)
          socket = connection.of_server if connection.respond_to?(:of_server)
          return super unless socket

          socket.perform { invoke(receiver, method, *args, connection: connection, &block) }
        end
      end
    end
  end
end
