# frozen_string_literal: true

# The pub/sub of this process: the servers that run in it, and what the application subscribed to and
# keeps without a client. That is remembered here, because it is asked for while the application
# loads, before a server is there, and holds for each worker that is forked later.
# SPDX-License-Identifier: MIT

module Rondo
  # Channels; see docs/PUSH.md.
  module PubSub
    # A block without a client.
    # @!attribute keys [Hash{Server::Core => Integer}] where it is subscribed
    # @api private
    Subscription = Struct.new(:channel, :pattern, :as, :since, :block, :keys)

    # What tells of changes of a server's subscriptions.
    # @!attribute key [Integer] to end it
    # @!attribute lock [Mutex] changes are noted in their order
    # @api private
    Watch = Struct.new(:key, :lock)

    # How much of a channel is kept.
    # @!attribute messages [Integer] at most
    # @!attribute ttl_ms [Integer] 0: for ever
    # @!attribute bytes [Integer] of messages; 0: any number
    # @api private
    Rule = Struct.new(:channel, :pattern, :messages, :ttl_ms, :bytes)

    # The highest id of a message.
    # @api private
    ID_MAX = (1 << 64) - 1

    @mutex = Mutex.new
    @cores = []
    @subscriptions = {}
    @rules = {}
    @watches = {}
    @interests = {}
    @hub = nil
    @presence = nil

    class << self
      # While a server runs in this process, it takes part.
      # @api private
      # @param core [Server::Core]
      # @yield serves
      # @return [void]
      def serve(core)
        return yield if @mutex.synchronize { @cores.include?(core) } # which refuses to run again

        begin
          join(core)
          @presence&.begin_at(core)
          yield
        ensure
          @presence&.end_at(core)
          release(core)
        end
      end

      # @return [Module] {Presence}, once it was used
      # @api private
      attr_writer :presence

      # @return [Boolean] whether a server runs in this process; not in a child that the application has forked
      def serving?
        @mutex.synchronize { !@cores.empty? && @joined == Process.pid }
      end

      # @api private
      # @return [Server::Core, nil] the server that runs in this process, the newest if there are several
      def core
        @mutex.synchronize { @cores.last }
      end

      # To the subscribers in this process.
      # @api private
      # @param channel [String, Symbol]
      # @param message [String, Hash, Array]
      # @return [Boolean] whether it is on its way
      def publish_here(channel, message)
        publish_to(@hub ? :root : :process, channel, message)
      end

      # In the master, which has no subscribers of its own.
      # @api private
      # @param hub [Hub, nil]
      # @return [void]
      def hub=(hub)
        @mutex.synchronize do
          @hub = hub
          @rules.each_value { |rule| hub.keep(rule) } if hub
        end
      end

      # @api private
      # @param reach [Symbol] :cluster, all subscribers of this server; :engine, the one in the master, and by it all
      #   who are subscribed, wherever they are; :siblings, those of the other processes; :root, the blocks of {Root}
      # @param channel [String, Symbol]
      # @param message [String, Hash, Array]
      # @return [Boolean] whether it is on its way
      def publish_to(reach, channel, message)
        return @hub.publish(channel, message, reach) if @hub

        done = @cores.map { |core| core.publish(channel, message, reach) }
        done.any?
      end

      # What has changed so far is noted for engines, on this thread if no other has come to it.
      # @return [void]
      # @api private
      def note_changes
        @mutex.synchronize { @cores }.each { |core| note_changes_of(core) }
      end

      # @api private
      # @return [Array<Array(String, Boolean)>] channels, and patterns (true), with subscribers here
      def interests
        @mutex.synchronize { @interests.keys }
      end

      # Keeps the last messages of a channel, or of each channel that a pattern matches, for those who
      # subscribe with `since:` and for event streams that come back. Again: replaces; 0 ends it.
      # @param channel [String, Symbol]
      # @param is_pattern [Boolean]
      # @param match [Symbol, nil] :redis for a pattern
      # @param size [Integer] messages for each channel
      # @param ttl [Numeric] seconds; 0 for ever
      # @param bytes [Integer] of the messages of each channel; the newest one stays, however long it is; 0 for any
      #   number
      # @return [void]
      # @raise [ArgumentError]
      def history(channel, is_pattern = false, size:, match: nil, ttl: 0, bytes: 0) # rubocop:disable Style/OptionalBooleanParameter
        is_pattern = pattern?(is_pattern ? true : false, match)
        name = pattern_of(channel, is_pattern)
        raise ArgumentError, "size must be from 0 to 4294967295" unless size.between?(0, 0xffff_ffff)
        raise ArgumentError, "ttl must be from 0 to 4294967295" unless ttl.between?(0, 0xffff_ffff)

        raise ArgumentError, "bytes must be from 0 to 9223372036854775807" unless bytes.between?(0, (1 << 63) - 1)

        rule = Rule.new(name, is_pattern, size, (ttl * 1000).ceil, bytes)
        @mutex.synchronize do
          key = [name, rule.pattern]
          @rules.delete(key) if @rules[key]&.messages&.zero? # one that begins again is the newest
          @rules[key] = rule
          @cores.each { |core| keep(core, rule) }
          @hub&.keep(rule)
        end
      end

      # As the hub finds it: a rule of this name, else the newest pattern that matches. One that is changed keeps its
      # place.
      # @api private
      # @param channel [String]
      # @return [Rule, nil]
      def rule_of(channel)
        rules = @mutex.synchronize { @rules.values }.reverse.select { |rule| rule.messages.positive? }
        name = channel.b
        rules.find { |rule| !rule.pattern && rule.channel.b == name } || rules.find do |rule|
          rule.pattern && !name.start_with?("\0rondo") && Hub::Core.matches?(rule.channel, name)
        end
      end

      # The same as {Rondo.subscribe}.
      # @param channel [String, Symbol]
      # @param is_pattern [Boolean]
      # @param match [Symbol, nil] :redis for a pattern
      # @param as [Symbol, nil] :text or :binary
      # @param since [Integer, String, Time, nil]
      # @return [true]
      # @raise [ArgumentError, TypeError]
      # @see Rondo.subscribe
      def subscribe(channel, is_pattern = false, match: nil, as: nil, since: nil, &block) # rubocop:disable Style/OptionalBooleanParameter
        raise ArgumentError, "a subscription without a client needs a block" unless block

        raise ArgumentError, "as must be :text, :binary or nil" unless [nil, :text, :binary].include?(as)

        is_pattern = pattern?(is_pattern ? true : false, match)
        added = Subscription.new(pattern_of(channel, is_pattern), is_pattern, as, id_of(since), block, {})
        @mutex.synchronize do
          before = @subscriptions[[added.channel, added.pattern]]
          @cores.each { |core| establish(core, added, before&.keys&.delete(core)) }
          @subscriptions[[added.channel, added.pattern]] = added
        end
        true
      end

      # The same as {Rondo.unsubscribe}.
      # @param channel [String, Symbol]
      # @param is_pattern [Boolean]
      # @param match [Symbol, nil]
      # @return [Boolean] whether there was one
      # @raise [ArgumentError, TypeError]
      # @see Rondo.unsubscribe
      def unsubscribe(channel, is_pattern = false, match: nil) # rubocop:disable Style/OptionalBooleanParameter
        key = [name_of(channel), pattern?(is_pattern, match)]
        @mutex.synchronize { !!end_subscription(@subscriptions.delete(key)) }
      end

      # @api private
      # @param channel [String, Symbol]
      # @param is_pattern [Boolean]
      # @param match [Symbol, nil]
      # @return [Array(String, Boolean)] the name as bytes, and whether it is a pattern
      # @raise [ArgumentError, TypeError]
      def key_of(channel, is_pattern, match)
        is_pattern = pattern?(is_pattern ? true : false, match)
        [pattern_of(channel, is_pattern), is_pattern]
      end

      private

      def join(core)
        forget_parent unless [nil, Process.pid].include?(@joined)
        @mutex.synchronize do
          @cores += [core]
          @joined = Process.pid
          @rules.each_value { |rule| keep(core, rule) }
          watch(core)
          @subscriptions.each_value { |subscription| establish(core, subscription) }
        end
      end

      # A child that the application has forked: what the servers of its parent are interested in is not its own.
      def forget_parent
        @mutex.synchronize do
          @cores = []
          [@interests, @watches].each(&:clear)
          @subscriptions.each_value { |subscription| subscription.keys.clear }
        end
        @told.each_key { |engine| reset(engine) }
      end

      def release(core)
        @mutex.synchronize do
          @cores -= [core]
          @subscriptions.each_value { |subscription| end_at(core, subscription) }
          watch = @watches.delete(core)
          core.unsubscribe(watch.key) if watch&.key # a signal may have interrupted `join`
        end
        interests.each { |interest| lose(core, interest) }
        flush(FAREWELL)
      end

      def keep(core, rule)
        core.keep(*rule)
      end

      # @param key [Integer, nil] of the one whose place it takes
      def establish(core, subscription, key = nil)
        subscription.keys[core] = core.subscribe(subscription.channel, subscription.pattern, subscription.as,
                                                 subscription.since, subscription.block, key)
      end

      def end_at(core, subscription)
        key = subscription.keys.delete(core)
        core.unsubscribe(key) if key
      end

      def end_subscription(subscription)
        return unless subscription

        @cores.each { |core| end_at(core, subscription) }
        subscription
      end

      # It may tell at once.
      def watch(core)
        watch = @watches[core] = Watch.new(nil, Mutex.new)
        watch.key = core.observe(->(_channel, _message, _id) { note_changes_of(core) })
      end

      # Several servers of one process are one to the world.
      def note_changes_of(core)
        @watches[core]&.lock&.synchronize do
          while (channel, is_pattern, is_wanted = core.change)
            is_wanted ? gain(core, [channel, is_pattern]) : lose(core, [channel, is_pattern])
          end
        end
      end

      # A server that has left may have one more thing to say.
      def gain(core, interest)
        interest(*interest, true) do
          @mutex.synchronize { @cores.include?(core) && (@interests[interest] ||= []).push(core).size == 1 }
        end
      end

      def lose(core, interest)
        interest(*interest, false) do
          @mutex.synchronize do
            cores = @interests[interest]
            @interests.delete(interest) if cores&.delete(core) && cores.empty?
          end
        end
      end

      # Names are bytes, and a String may change later.
      def name_of(channel)
        raise TypeError, "a channel must be a String or Symbol, not #{channel.class}" unless channel.is_a?(String) ||
                                                                                             channel.is_a?(Symbol)
        name = String.new(channel.to_s, encoding: Encoding::UTF_8).freeze
        raise ArgumentError, "the name of a channel must have 1 to 1024 bytes" unless name.bytesize.between?(1, 1024)

        name
      end

      def pattern_of(channel, is_pattern)
        name = name_of(channel)
        raise ArgumentError, "a pattern must have 1 to 255 bytes" if is_pattern && name.bytesize > 255

        name
      end

      # For servers, which may come later: an error is the caller's now.
      def id_of(since)
        since = (since.to_r * 1_000_000).to_i if since.is_a?(Time)
        return since if since.nil? || since.is_a?(String)
        raise TypeError, "since must be an Integer, a String or a Time, not #{since.class}" unless since.is_a?(Integer)
        raise ArgumentError, "since must be from 0 to #{ID_MAX}" unless since.between?(0, ID_MAX)

        since
      end

      def pattern?(flag, match)
        raise ArgumentError, "match must be :redis or nil" unless [nil, :redis].include?(match)

        flag || match == :redis
      end
    end
  end
end
