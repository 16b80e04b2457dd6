# frozen_string_literal: true

# Streams of clients that come back and go on where they were: the subprotocol actioncable-v1-ext-json. With
# `adapter: rondo` and config.rondo.cable_history, a broadcast has an id in the history of the server (docs/PUSH.md).
# Such a client is told the id as the offset in its stream, and says what it saw last when it subscribes again.
#
# Nothing proves that the history has all since then but the message that it saw last. So the replay begins with that
# one: it is not sent again, and if another one comes first, the client learns that something is missing.
# SPDX-License-Identifier: MIT

module Rondo
  module Rails
    module Cable
      # Rules, and the streams of one connection. All of it runs in events of the connection, which come one at a time.
      class History
        PROTOCOL = "actioncable-v1-ext-json"
        # Ids are of the server's history, which lives as long as the server.
        EPOCH = "rondo"
        # Ids are the time in microseconds, by a clock that the server reads a little earlier.
        FLOOR_US = 1_000_000

        # @!attribute offset [Integer, nil] of the message that proves that nothing is missing, until it comes
        # @!attribute last [Integer] id of the last message that was sent
        # @!attribute floor [Integer, nil] of a listener that asked for no history: what is older is a replay of others
        Listener = Struct.new(:stream, :identifier, :offset, :last, :floor) do
          # @return [void]
          def leave
            stream.leave(self)
          end
        end

        class << self
          # @param rules [Hash{String => Hash}] broadcastings, or patterns of them: size: messages, ttl: seconds
          # @return [void]
          # @raise [ConfigurationError] one line
          def keep(rules)
            (rules || {}).each do |broadcasting, rule|
              is_pattern = broadcasting.match?(/[*?\[\\]/)
              PubSub.history(channel(broadcasting), is_pattern, size: rule.fetch(:size), ttl: rule.fetch(:ttl, 300))
            end
          rescue KeyError, NoMethodError, ArgumentError, TypeError => e
            raise ConfigurationError, "config.rondo.cable_history must be like " \
                                      "{ \"room_*\" => { size: 100, ttl: 300 } }: #{e.message}"
          end
        end

        # @param broadcasting [String]
        # @return [String] of the server's channel, as the adapter has it
        def self.channel(broadcasting)
          prefix = ::ActionCable::Server::Base.config.cable[:channel_prefix]
          ::ActionCable::SubscriptionAdapter::Rondo.channel([prefix, broadcasting].compact.join(":"))
        end

        # @param socket [Socket]
        def initialize(socket)
          @socket = socket
          @streams = {}
        end

        # @param broadcasting [String]
        # @param identifier [String]
        # @param request [Object] what the client has sent as `history`: since, streams; anything else is none
        # @return [Listener]
        # @raise [Error] the client is closed, or at its limit of subscriptions
        def join(broadcasting, identifier, request)
          stream = @streams[broadcasting] ||= ResumedStream.new(@socket, broadcasting) { @streams.delete(broadcasting) }
          offset, since = History.read(request, broadcasting)
          floor = History.now - FLOOR_US unless offset || since
          listener = Listener.new(stream, identifier, offset, offset || since || stream.last, floor)
          stream.join(listener, offset ? offset - 1 : since)
          @socket.perform { stream.confirm(identifier) } if since && !offset
          listener
        end

        # @return [Integer] about the id that a message of now has
        def self.now
          Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond)
        end

        # @return [Array(Integer, nil)] the offset that a client had, and the id of the time that it asks for
        def self.read(request, broadcasting)
          return unless request.is_a?(Hash)

          streams = request["streams"]
          position = streams[broadcasting] if streams.is_a?(Hash)
          offset = position["offset"] if position.is_a?(Hash) && position["epoch"] == EPOCH
          [number(offset), number(request["since"], SECONDS)&.*(1_000_000)]
        end

        # Microseconds of seconds below this fit into an id.
        SECONDS = 1 << 40
        private_constant :SECONDS

        def self.number(value, most = 1 << 53)
          value if value.is_a?(Integer) && value.between?(1, most)
        end
        private_class_method :number
      end

      # A broadcasting that one client listens to, by one identifier or several.
      class ResumedStream
        # Seconds in which a replay comes, or never (docs/PUSH.md).
        REPLAY = 15
        private_constant :REPLAY

        # @return [Integer] the highest id so far
        attr_reader :last

        # @param socket [Socket]
        # @param broadcasting [String]
        # @yield when nobody listens any more
        def initialize(socket, broadcasting, &unused)
          @socket = socket
          @broadcasting = broadcasting
          @unused = unused
          @name = History.channel(broadcasting)
          @listeners = []
          @last = 0
          @replay_until = 0
        end

        # @param listener [History::Listener]
        # @param since [Integer, nil] the id from which on it wants all messages
        # @return [void]
        # @raise [Error]
        def join(listener, since)
          from = [since, *@listeners.map { |one| one.offset ? one.offset - 1 : one.last }].compact.reject(&:zero?).min
          @listeners << listener
          return if from.nil? && @listeners.size > 1 # another block would lose what waits for this one

          @replay_until = clock + REPLAY if from
          is_there = @socket.client.subscribe(@name, since: from) { |_, message, id| deliver(message, id) }
          return if is_there

          leave(listener)
          raise Error, "the client has gone, or has as many subscriptions as it may"
        end

        # @param listener [History::Listener]
        # @return [void]
        def leave(listener)
          @listeners.delete_if { |one| one.equal?(listener) }
          return unless @listeners.empty?

          @unused.call
          @socket.client.unsubscribe(@name)
        end

        # @param identifier [String]
        # @param answer [String]
        # @return [void]
        def confirm(identifier, answer = "confirm_history")
          @socket.transmit(JSON.generate({ type: answer, identifier: identifier }))
        end

        private

        def deliver(message, id)
          text = message.dup.force_encoding(Encoding::UTF_8)
          ::ActiveSupport::JSON.decode(text)
          @listeners.each { |listener| send_to(listener, text, id) }
          @last = id if id && id > @last
        rescue StandardError => e
          ::ActionCable.server.logger.error("A message to #{@broadcasting} was not sent: #{e.message} (#{e.class})")
        end

        def send_to(listener, text, id)
          prove(listener, id) if listener.offset && id
          return if id && (id <= listener.last || older?(listener, id))

          listener.last = id if id
          @socket.transmit("#{FanOut.head_of(listener.identifier)}#{text}#{position(id)}}")
        end

        # Only while a replay may come: whatever the system's clock does, what is broadcast now arrives.
        def older?(listener, id)
          listener.floor && id <= listener.floor && clock < @replay_until
        end

        def clock
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # The first message of the replay is the one that the client saw last.
        def prove(listener, id)
          confirm(listener.identifier, id == listener.offset ? "confirm_history" : "reject_history")
          listener.offset = nil
        end

        def position(id)
          ",\"stream_id\":#{JSON.generate(@broadcasting)},\"epoch\":\"#{History::EPOCH}\",\"offset\":#{id}" if id
        end
      end
    end
  end
end
