# frozen_string_literal: true

# Streams of many connections: the adapter is asked once for each broadcasting of a process, a message is wrapped once
# for each identifier that clients have given it, and the server's channels carry it to the clients.
#
#   broadcasting "room_1" -> Entry -> identifier {"channel":"RoomChannel","id":1} -> a name -> clients
#
# No lock is held while the adapter is called: it may call back at once, with a lock of its own.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # The streams of one server of Action Cable in one process.
      class FanOut
        # One stream of one channel object.
        # @!attribute entry [Entry]
        # @!attribute identifier [String]
        # @!attribute name [String] of the server's channel
        # @!attribute socket [Socket]
        Member = Struct.new(:entry, :identifier, :name, :socket) do
          # @return [void]
          def leave
            socket.leave(self)
            entry.leave(self)
          end
        end

        # @param message [String] as an adapter has it
        # @return [String, nil] the text that it is in JSON; nil: it is something else
        def self.html_of(message)
          text = ::ActiveSupport::JSON.decode(message)
          text if text.is_a?(String)
        end

        # @param identifier [String] of a channel, as its client has written it
        # @return [String] how a message to it begins; the message in JSON and a brace complete it
        def self.head_of(identifier)
          "{\"identifier\":#{JSON.generate(identifier)},\"message\":"
        end

        # @param server [ActionCable::Server::Base]
        def initialize(server)
          @server = server
          @is_closed = false
          @entries = {}
          @mutex = Mutex.new
        end

        # @param broadcasting [String]
        # @param identifier [String, nil] of the channel, as its client has written it; nil: a stream of events
        # @param socket [Socket, TurboSource::Stream]
        # @return [Member, nil] its client gets messages from now on, once the adapter has the subscription; nil: this
        #   was closed meanwhile, and the server of Action Cable has another one
        # @raise [Error] the client is closed, or at its limit of subscriptions
        def join(broadcasting, identifier, socket)
          member = @mutex.synchronize do
            return if @is_closed

            entry = @entries[broadcasting] ||= Entry.new(self, @server, broadcasting)
            Member.new(entry, identifier, entry.add(identifier), socket)
          end
          return member if socket.join(member)

          member.leave
          raise Error, "the client has gone, or has as many subscriptions as it may"
        end

        # @param entry [Entry]
        # @param identifier [String]
        # @return [void]
        def leave(entry, identifier)
          name = entry.broadcasting
          unused = @mutex.synchronize do
            entry.remove(identifier) && (@is_closed || (@entries[name].equal?(entry) && @entries.delete(name)))
          end
          entry.unsubscribe if unused
        end

        # The adapter has ended.
        # @return [void]
        def close
          @mutex.synchronize do
            @is_closed = true
            @entries.clear
          end
        end
      end

      # A broadcasting that somebody listens to.
      class Entry
        # One identifier: the head of its messages (nil: a stream of events), the name of its channel, how many listen.
        Place = Struct.new(:head, :name, :listeners)
        private_constant :Place

        # @return [String]
        attr_reader :broadcasting

        # @param fan_out [FanOut]
        # @param server [ActionCable::Server::Base]
        # @param broadcasting [String]
        def initialize(fan_out, server, broadcasting)
          @fan_out = fan_out
          @server = server
          @broadcasting = broadcasting
          @places = {} # by identifier; under the lock
          @state = nil
          @waiting = []
          @mutex = Mutex.new
          @callback = ->(message) { dispatch(message) }
        end

        # @param identifier [String, nil] nil: a stream of events, which gets what the message is in JSON
        # @return [String] the name of its channel
        def add(identifier)
          @mutex.synchronize do
            place = @places[identifier] ||= Place.new((FanOut.head_of(identifier) if identifier), Cable.new_name, 0)
            place.listeners += 1
            place.name
          end
        end

        # @param identifier [String]
        # @return [Boolean] whether it was the last one
        def remove(identifier)
          @mutex.synchronize do
            place = @places[identifier]
            @places.delete(identifier) if (place.listeners -= 1).zero?
            @places.empty?
          end
        end

        # @param member [FanOut::Member]
        # @return [void]
        def leave(member)
          @fan_out.leave(self, member.identifier)
        end

        # The first one asks the adapter; those who come meanwhile wait for the same answer.
        # @yieldparam error [Exception, nil] nil: the adapter has the subscription
        # @return [void]
        def when_subscribed(&answer)
          state = @mutex.synchronize do
            @waiting << answer unless @state == :subscribed
            @state.tap { @state ||= :asked }
          end
          answer.call(nil) if state == :subscribed
          subscribe if state.nil?
        end

        # An adapter that has ended meanwhile knows nothing of it any more.
        # @return [void]
        def unsubscribe
          @adapter.unsubscribe(@broadcasting, @callback) if @adapter.equal?(@server.pubsub)
        end

        private

        def subscribe
          @adapter = @server.pubsub
          @adapter.subscribe(@broadcasting, @callback, -> { answer(:subscribed, nil) })
        rescue StandardError, ScriptError => e # also an adapter whose gem is missing
          answer(nil, e)
        end

        def answer(state, error)
          waiting = @mutex.synchronize do
            @state = state
            @waiting.slice!(0..)
          end
          waiting.each { |answer| answer.call(error) }
        end

        # Once for all, so what is not JSON goes to nobody, as with Rails.
        def dispatch(message)
          message = message.data if message.respond_to?(:data) # of Rails 8.2
          text = message.encoding == Encoding::UTF_8 ? message : message.dup.force_encoding(Encoding::UTF_8)
          plain = ::ActiveSupport::JSON.decode(text)
          @mutex.synchronize { @places.values }.each do |place|
            sent = place.head ? "#{place.head}#{text}}" : plain
            next unless sent.is_a?(String)

            Cable.publish(place.name, sent) or lose("the server has no room")
          end
        rescue StandardError => e
          lose("#{e.message} (#{e.class})")
        end

        def lose(error)
          ::ActionCable.server.logger.error("A message to #{@broadcasting} was not sent: #{error}")
        end
      end
    end
  end
end
