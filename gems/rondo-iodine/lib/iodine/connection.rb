# frozen_string_literal: true

# The argument of callbacks: iodine's names and answers over a Rondo::Client. adapter.rb makes it and calls the handler.
# SPDX-License-Identifier: MIT

module Iodine
  # A WebSocket, a stream of events or a raw connection.
  class Connection
    # @param client [Rondo::Client, nil] nil, as an application has it: one that is closed
    # @param adapter [Base::Adapter, nil]
    def initialize(client = nil, adapter = nil)
      @client = client
      @adapter = adapter
      @subscriptions = {} # is each name a pattern?
      @writes = 0
    end

    # Queues data.
    # @param data [String] UTF-8 goes as text, every other encoding as binary
    # @return [true, nil] nil when it is closed
    # @raise [TypeError] it has no String
    def write(data)
      return unless open?

      data = string_of(data) unless data.is_a?(String)
      data = sendable(data) or return false
      @writes += 1
      @client.write(data) || nil
    end

    # Closes the connection after all that is queued.
    # @return [nil]
    def close
      @client&.close
      nil
    end

    # @return [Boolean]
    def open?
      @client ? @client.open? : false
    end

    # @return [Integer] calls of {write} that are not sent yet, as far as that is known; -1 when it is closed
    def pending
      bytes = @client ? @client.pending : -1
      return bytes if bytes.negative?
      return @writes = 0 if bytes.zero?

      [@writes, 1].max
    end

    # @return [Symbol, nil] :websocket, :sse or :raw; nil when it is closed
    def protocol
      @client.protocol if alive?
    end

    # @return [Integer, nil] seconds of silence after which the peer, or the handler, is asked; nil when it is closed
    def timeout
      @client.timeout.to_i if open?
    end

    # @param seconds [Integer] from 0 to 255
    # @raise [TypeError, RangeError]
    def timeout=(seconds)
      Base.check(seconds, Integer)
      raise RangeError, "timeout out of range." unless seconds.between?(0, 255)

      @client.timeout = seconds if open?
    end

    # @return [Hash, nil] of the request that it was
    def env
      @client.env if alive?
    end

    # @return [Object, nil]
    def handler
      @adapter.handler if alive?
    end

    # Ends the work of the old handler (on_close), and begins that of the new one (on_open). Subscriptions stay.
    # @param handler [Object, nil] nil and false close the connection
    def handler=(handler)
      return unless alive?

      handler ? @adapter.switch(handler, self) : close
    end

    # @return [Integer] 0, which is true: there always is pub/sub
    def pubsub?
      0
    end

    # @overload subscribe(channel, options = {})
    #   @param channel [String, Symbol]
    #   @param options [Hash] match: :redis for a pattern; as: :binary; handler: in place of the block
    #   @yieldparam channel [String] in BINARY
    #   @yieldparam message [String] in BINARY
    #   @return [String, Symbol, nil] the channel; nil when it is closed, and for binary messages of an event stream
    #   @raise [ArgumentError, TypeError]
    def subscribe(*arguments, &block)
      wish = Base::Wish.read(arguments, block)
      return if !alive? || (wish.binary && protocol == :sse)

      replace(wish)
      options = { match: wish.match, as: wish.binary ? :binary : nil }
      callable = wish.block
      done = if callable
               @client.subscribe(wish.name, **options) { |name, message, *| callable.call(name.b, message.b) }
             else
               @client.subscribe(wish.name, **options)
             end
      wish.given if done
    end

    # @param channel [String, Symbol]
    # @return [Boolean, nil] whether there was one; nil when it is closed
    # @raise [TypeError]
    def unsubscribe(channel)
      return unless alive?

      name = Base.name_of(channel)
      known = @subscriptions.key?(name)
      @client.unsubscribe(name, @subscriptions.delete(name) || false) if known
      known
    end

    # @see Iodine.publish
    # @overload publish(channel, message, engine = nil)
    #   @return [Boolean] whether it is on its way
    #   @raise [ArgumentError, TypeError]
    def publish(*arguments)
      Iodine.publish(*arguments)
    end

    # @return [String]
    def inspect
      "#<Iodine::Connection>"
    end

    # @api private
    # @return [String, nil] what the handshake of TLS agreed upon
    def agreed
      @client&.alpn
    end

    # @api private
    attr_writer :adapter

    # After on_close nothing can be done with it.
    # @api private
    # @return [void]
    def over
      @over = true
    end

    private

    def alive?
      @client && !@over
    end

    def string_of(data)
      Base.warning("`Iodine::Connection#write` was called with a non-String object. (#{caller(2, 1).first})")
      text = data.to_s
      Base.check(data, String) unless text.is_a?(String)
      text
    end

    # In the encoding that makes the server send it as iodine does. Text that is none goes as binary, because browsers
    # would close the connection.
    def sendable(data)
      return data if protocol == :raw
      return data if data.encoding == Encoding::UTF_8 && data.valid_encoding?
      return data.b unless protocol == :sse

      text = data.dup.force_encoding(Encoding::UTF_8)
      return text if text.valid_encoding?

      Base.warning("ignoring an attempt to write binary data to a stream of events.")
      nil
    end

    # The same name is the same subscription, whether it is a pattern or not.
    def replace(wish)
      before = @subscriptions[wish.name]
      now = wish.match == :redis
      @client.unsubscribe(wish.name, before) if @subscriptions.key?(wish.name) && before != now
      @subscriptions[wish.name] = now
    end
  end
end
