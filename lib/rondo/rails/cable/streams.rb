# frozen_string_literal: true

# Streams that only pass on what is broadcast: no Ruby runs for each client. A callback, a coder, or a channel that has
# a way of its own to transmit has Rails' way.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # Of ActionCable::Channel::Base.
      module Streams
        # What a channel class may have of its own, and whose it is otherwise.
        OF_RAILS = {
          transmit: "ActionCable::Channel::Base",
          stream_handler: "ActionCable::Channel::Streams",
          default_stream_handler: "ActionCable::Channel::Streams",
          stream_transmitter: "ActionCable::Channel::Streams",
          worker_pool_stream_handler: "ActionCable::Channel::Streams"
        }.freeze

        # @param broadcasting [String]
        # @param callback [#call, nil]
        # @param coder [#decode, nil]
        # @return [void]
        def stream_from(broadcasting, callback = nil, coder: nil, &block)
          return super unless callback.nil? && block.nil? && (coder.nil? || coder.equal?(::ActiveSupport::JSON))
          return if left?

          socket = socket_of_server
          return super unless socket&.plain && streams_as_rails?

          stream_by_server(String(broadcasting), socket)
        end

        # @param broadcasting [String]
        # @return [void]
        def stop_stream_from(broadcasting)
          member = streams[broadcasting] if socket_of_server
          return super unless by_server?(member)

          streams.delete(broadcasting)
          stop_by_server(broadcasting, member)
        end

        # @return [void]
        def stop_all_streams
          return super unless socket_of_server

          mine, others = streams.partition { |_, handler| by_server?(handler) }
          mine.each { |broadcasting, member| stop_by_server(broadcasting, member) }
          @_streams = others.to_h
          super
        end

        private

        # Tests of applications have connections that stand for others (ActionCable::Channel::TestCase).
        def socket_of_server
          connection.of_server if connection.respond_to?(:of_server)
        end

        def streams_as_rails?
          OF_RAILS.all? { |name, owner| method(name).owner.name == owner }
        end

        def stream_by_server(broadcasting, socket)
          stop_stream_from(broadcasting) if by_server?(streams[broadcasting])
          return stream_with_history(broadcasting, socket) if socket.history

          defer_subscription_confirmation!
          member = streams[broadcasting] = connection.join_stream(broadcasting, identifier, socket)
          member.entry.when_subscribed do |error|
            error ? socket.perform { give_up(broadcasting, error) } : confirm(broadcasting)
          end
        rescue Error => e # of the server: a limit
          raise if subscription_confirmation_sent?

          logger.error "#{self.class.name} cannot stream from #{broadcasting}: #{e.message}"
          reject
        end

        def stream_with_history(broadcasting, socket)
          streams[broadcasting] = socket.history.join(broadcasting, identifier, socket.history_request)
          logger.info "#{self.class.name} is streaming from #{broadcasting}, with history"
        end

        # Not all versions of Rails know.
        def left?
          respond_to?(:unsubscribed?) && unsubscribed?
        end

        def by_server?(handler)
          handler.is_a?(FanOut::Member) || handler.is_a?(History::Listener)
        end

        def confirm(broadcasting)
          ensure_confirmation_sent
          logger.info "#{self.class.name} is streaming from #{broadcasting}"
        end

        # An adapter that is away is an error in the log. The subscription goes, so that its client, which asks again
        # until it is answered, has it when the adapter is there.
        def give_up(broadcasting, error)
          logger.error "#{self.class.name} cannot stream from #{broadcasting}: #{error.message} (#{error.class})"
          connection.subscriptions.remove_subscription(self) unless left?
        end

        def stop_by_server(broadcasting, member)
          member.leave
          logger.info "#{self.class.name} stopped streaming from #{broadcasting}"
        end
      end
    end
  end
end
