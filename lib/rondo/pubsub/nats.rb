# frozen_string_literal: true

# Pub/sub through NATS, and with JetStream channels with a history (nats/stream.rb). What is called here only queues
# and wakes the engine's thread (nats/pump.rb), which is started in the process that first needs it. Needs no gem.
# SPDX-License-Identifier: MIT

require "uri"
require "rondo/pubsub/engine"
require "rondo/pubsub/queued/engine"
require "rondo/pubsub/queued/lineage"
require "rondo/pubsub/relay_frames"
require "rondo/pubsub/queued/outage"
require "rondo/pubsub/queued/outbox"
require "rondo/pubsub/nats/credentials"

module Rondo
  module PubSub
    # An engine; one connection for each process that uses it. The verb `nats` makes it.
    # @api private
    class Nats < Engine
      include Queued

      # Why there is no connection.
      class Error < Rondo::Error; end

      # A message that waits.
      # @api private
      class Entry < Outbox::Entry
        # @return [Integer] of the messages of this engine
        attr_accessor :number
        # @return [String]
        attr_accessor :channel
        # @return [String] "t" for text, "b" for binary
        attr_accessor :kind
      end

      DEFAULT_PORT = 4222
      THREAD = "rondo nats"
      # Bytes of headers beside a message.
      HEAD_MAX = 4096
      # Bytes of the longest thing that NATS sends: an answer with a message in base64.
      ANSWER_MAX = (RelayFrames::PAYLOAD_MAX + (2 * HEAD_MAX)) * 4 / 3
      # @api private
      TOO_LONG = "a message is longer than max_payload of NATS, and was not sent"
      OPTIONS = %i[jetstream prefix required tls messages bytes replicas storage ping timeout queue queue_bytes].freeze

      # Says that a message is not what its bytes look like.
      # @api private
      KIND = "Rondo-Kind"

      # @return [String] where NATS is, without the password
      attr_reader :name
      # @return [Integer] bytes of a message that the server takes; 0: not known yet
      attr_writer :payload_max

      # @param url [String] nats://USER:PASSWORD@HOST:PORT, tls:// for TLS; several with commas between
      # @param jetstream [Boolean] whether channels with a history are kept by JetStream
      # @param prefix [String] of all names; each application in one NATS has its own
      # @param tls [Hash, nil] as of OpenSSL::SSL::SSLContext#set_params; cert and key are paths
      # @param messages [Integer, nil] that the stream keeps of each channel at least; nil: as the rules say
      # @param bytes [Integer, nil] of the stream; nil: no limit of its own
      # @param replicas [Integer] of the stream, in a cluster of NATS
      # @param storage [String] "file" or "memory"
      # @param ping [Numeric] seconds of silence after which the connection is pinged
      # @param timeout [Numeric] seconds to connect, and for each answer
      # @param queue [Integer] messages kept while NATS is away
      # @param queue_bytes [Integer] and their bytes
      # @param log [Logger]
      # @param access [Hash] user, password, password_file, token, token_file, creds, nkey (paths but the first two
      #   and token)
      # @raise [ConfigurationError]
      def initialize(url, jetstream: false, prefix: "rondo", tls: nil, messages: nil, bytes: nil, replicas: 1,
                     storage: "file", ping: 10, timeout: 5, queue: 10_000, queue_bytes: 64 << 20, log: PubSub.log,
                     **access)
        super()
        require "rondo/pubsub/nats/stream"
        @addresses = Nats.addresses(url)
        unknown = access.keys - Credentials::OPTIONS
        raise ConfigurationError, "nats: unknown option #{unknown.first}" if unknown.any?

        @names = Names.new(prefix)
        @name = "NATS at #{@addresses.map { |each| "#{each.hostname}:#{each.port}" }.join(", ")}"
        @access = Credentials.new(access)
        @terms = { tls: tls, timeout: timeout, ping: ping, bytes_max: ANSWER_MAX }
        @keeping = { messages: messages, bytes: bytes, replicas: replicas, storage: storage } if jetstream
        Wish.check(@keeping) if @keeping
        @limits = [queue, queue_bytes]
        @log = log
        @mutex = Mutex.new
        @changed = ConditionVariable.new
        begin_anew
      end

      # Whether an engine can be made of it; nothing is connected.
      # @param url [String]
      # @param options [Hash]
      # @return [void]
      # @raise [ConfigurationError]
      def self.check(url, options)
        unless url.is_a?(String)
          raise ConfigurationError, "it must be an address such as nats://HOST:PORT, " \
                                    "not #{Queued.without_secrets(url.inspect)}"
        end
        options.each_key do |name|
          next if OPTIONS.include?(name) || Credentials::OPTIONS.include?(name)

          raise ConfigurationError, "unknown option #{name}"
        end
        new(url, **options.except(:required))
      end

      # @param url [String]
      # @return [Array<URI>]
      # @raise [ConfigurationError] of one line, in which there is no password
      def self.addresses(url)
        all = url.to_s.split(",").map do |text|
          URI.parse(text.strip).tap do |uri|
            raise ArgumentError unless %w[nats tls].include?(uri.scheme) && !uri.hostname.to_s.empty?

            uri.port ||= DEFAULT_PORT
          end
        end
        raise ArgumentError if all.empty?

        all
      rescue ArgumentError, URI::Error
        raise ConfigurationError, "this is not the address of a NATS server: #{Queued.without_secrets(url)}"
      end

      # @return [Boolean] whether messages have ids of the engine
      def keeps?
        !@keeping.nil?
      end

      # Who takes what is in streams.
      # @return [#item, #copy, nil]
      attr_writer :hub_link

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @param after [Integer] 0: no history; 1: from now on; else what came after this id
      # @return [void]
      def subscribe(channel, is_pattern, after = 0)
        queue do
          @stream.follow(channel, after) if after.positive? && @stream && !is_pattern
          @interests.add(channel, is_pattern)
        end
      end

      # @param channel [String]
      # @param is_pattern [Boolean]
      # @return [void]
      def unsubscribe(channel, is_pattern)
        queue do
          @stream&.forget(channel) unless is_pattern
          @interests.remove(channel, is_pattern)
        end
      end

      # @param channel [String]
      # @param message [String]
      # @param terms [Queued::Terms, nil] of its history
      # @yieldparam result [Integer, Boolean] its id in the stream, true for another one that NATS has, false for one
      #   that was refused; on a thread of its own
      # @return [Boolean] false when the queue is full, the engine closed, or the message too long for the server; the
      #   block is not called then
      def publish(channel, message, terms = nil, &block)
        is_passing = passing?(channel)
        return false if is_passing && away?
        return too_long if message.bytesize + HEAD_MAX > (@payload_max&.nonzero? || RelayFrames::PAYLOAD_MAX)

        kind = kind_of(message)
        return push(Kept.new(message.b, true, block), channel, kind, terms) if terms && @stream

        push(Entry.new(message.b, true, block, passing: is_passing), channel, kind)
      end

      # Of the engine before a restart.
      # @param channel [String]
      # @param message [String]
      # @param terms [Queued::Terms, nil]
      # @param number [Integer] that it had there, so that it is written once; 0: it had none
      # @return [Boolean] as {#publish}
      def publish_again(channel, message, terms, number)
        return publish(channel, message, terms) unless terms && @stream && @lineage.former_number?(number)

        push(Kept.new(message.b, true, nil), channel, kind_of(message), terms, number)
      end

      # @see Queued#lineage
      def lineage
        @mutex.synchronize { @lineage.to_s if @stream }
      end

      # @see Queued#lineage=
      def lineage=(text)
        @mutex.synchronize { @lineage.adopt(text) }
      end

      # @return [Boolean] see {Engine#confirms?}
      def confirms?
        true
      end

      # A rule of the history.
      # @param terms [Queued::Terms]
      # @return [void]
      def keep(terms)
        if terms.limit && @stream
          @log.error "! #{@name} keeps channels by number and age: bytes of a rule limit only the copies of servers"
        end
        queue { @stream&.keep(terms) }
      end

      # The hub wants the newest messages of a channel.
      # @param channel [String]
      # @return [void]
      def copy(channel)
        queue { @stream&.copy(channel) }
      end

      # ---- on the thread of the pump ----

      # @param message [Message] of a channel without a history
      # @return [void]
      def deliver(message)
        channel = @names.channel(message.subject) or return
        kind = message.headers[KIND]
        text = kind == "b" ? message.data.b : Queued.text(message.data)
        PROCESS.publish(channel, text)
      rescue StandardError => e
        @outage.refused("a message from NATS could not be delivered: #{e.message} (#{e.class})")
      end

      def item(item)
        @hub_link ? @hub_link.item(item) : true
      end

      # @see Queued::HubLink#begins_at
      def begins_at(id)
        @hub_link&.begins_at(id)
      end

      def give(...)
        @hub_link ? @hub_link.copy(...) : true
      end

      # @param entry [Entry] of no stream
      # @return [String] the operation
      def encode(entry)
        looks = kind_of(Queued.text(entry.bytes))
        headers = looks == entry.kind ? {} : { KIND => entry.kind }
        Wire.publish(subject_of(entry), entry.bytes, headers: headers)
      end

      # @param entry [Entry] of no stream
      # @return [String]
      def subject_of(entry)
        @names.plain(entry.channel)
      end

      # Under the mutex: NATS has it, or never will.
      def done(entry)
        @outbox.done(entry)
        drained if @outbox.empty?
      end

      # Under the mutex.
      # @param entry [Entry]
      # @param result [Integer, Boolean] see {#publish}
      # @return [void]
      def tell(entry, result)
        resolve(entry, result)
      end

      # @param text [String]
      # @return [void]
      def refused(text)
        @outage.refused(text)
      end

      # A message of this engine was written where it does not count: again, behind what waits.
      # @param block [Proc, nil] of who waits for it
      def again(channel, message, kind, block = nil)
        entry = Kept.new(message, true, block)
        return if add(entry, channel, kind)

        @outage.full(@outbox.limits)
        tell(entry, false)
      end

      private

      # In a process that was forked the parent's connections, threads and messages are not ours.
      def begin_anew
        @pump&.close
        @pid = nil
        @closed = false
        @lineage = Lineage.new
        begin_replies
        @outbox = Outbox.new(*@limits, on_lost: ->(_entry) {})
        @interests = Interests.new(@names)
        @outage = Outage.new(@name, @log) { @mutex.synchronize { @changed.broadcast } }
        @stream = Stream.new(@names, @interests, self, lineage: @lineage, **@keeping) if @keeping
      end

      def begin_pump
        @held = Held.new(@outbox, @name, @log)
        parts = Pump::Parts.new(@outbox, @interests, @stream, @outage, @held)
        Pump.new(self, @addresses, parts, @mutex, access: @access, **@terms)
      end

      def hurry
        @mutex.synchronize { @held.hurry }
        super
      end

      def push(entry, *words)
        queue do
          start_replies if entry.block
          next true if add(entry, *words)

          @outage.full(@outbox.limits) unless entry.passing
          false
        end
      end

      def add(entry, channel, kind, terms = nil, number = nil)
        entry.number = number || @lineage.next_number
        entry.channel, entry.kind = channel, kind
        entry.terms = terms if terms
        !(entry.is_a?(Kept) && @outbox.crowded?) && @outbox.push(entry)
      end

      def said(entry)
        [entry.channel, Queued.with_kind(entry.bytes, entry.kind), entry.is_a?(Kept) ? entry.number : 0]
      end
    end
  end
end
