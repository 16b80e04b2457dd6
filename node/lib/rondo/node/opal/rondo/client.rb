# backtick_javascript: true
# frozen_string_literal: true

# What the callbacks of `rack.upgrade` get: the other side of a WebSocket or of an event stream. `self.endpoint` is the
# connection in JavaScript (engine/endpoint.js).
# SPDX-License-Identifier: MIT

module Rondo
  # One connection, for its handler.
  class Client
    # @return [Hash] of the request, without what was valid only until its answer
    attr_reader :env

    # @param data [String, Hash, Array]
    # @return [Boolean] false when it is closed
    # @raise [TypeError, ArgumentError]
    def write(data)
      `self.endpoint.write(#{PubSub.wire(data)})`
    end

    # @overload event(data, event: nil, id: nil, retry: nil)
    #   @param data [String, Hash, Array, nil] nil: only the id and the time to reconnect are sent
    #   @return [Boolean]
    #   @raise [TypeError, ArgumentError]
    def event(data, **fields)
      unknown = fields.keys - %i[event id retry]
      raise ArgumentError, "unknown keyword: #{unknown.first.inspect}" unless unknown.empty?

      line = PubSub.fields(fields[:event], fields[:id], fields[:retry])
      bytes = data.nil? ? nil : PubSub.wire(data)
      `self.endpoint.event(bytes === nil ? null : bytes, line)`
    end

    # @param code [Integer]
    # @param reason [String]
    def close(code = 1000, reason = "")
      `self.endpoint.close(code, reason.toString())`
      nil
    end

    def open?
      `self.endpoint.isOpen()`
    end

    # @return [Integer] bytes queued, -1 when closed
    def pending
      `self.endpoint.pending()`
    end

    # @return [Symbol] :websocket or :sse
    def protocol
      `self.endpoint.protocol`
    end

    # @return [Array(String, Integer), nil]
    def peer
      `self.endpoint.peer()`
    end

    # @return [String, nil]
    def alpn
      `self.endpoint.alpn() || nil`
    end

    # @return [Object]
    def handler
      `self.endpoint.handler`
    end

    def handler=(handler)
      `self.endpoint.changeHandler(handler)`
    end

    # @return [Numeric] seconds
    def timeout
      `self.endpoint.timeout / 1000`
    end

    def timeout=(seconds)
      `self.endpoint.setTimeout(seconds * 1000)`
    end

    # @return [Integer, nil] in on_close
    def close_code
      `self.endpoint.closeCode || nil`
    end

    # @return [String, nil]
    def close_reason
      `self.endpoint.closeReason == null ? nil : self.endpoint.closeReason`
    end

    # @return [true, nil]
    def subscribe(channel, is_pattern = false, match: nil, as: nil, since: nil, &block)
      PubSub.subscribe(`self.endpoint`, channel, PubSub.pattern?(is_pattern, match), as, since, block)
    end

    # @return [Boolean]
    def unsubscribe(channel, is_pattern = false, match: nil)
      PubSub.unsubscribe(`self.endpoint`, channel, PubSub.pattern?(is_pattern, match))
    end

    # @return [Boolean]
    def publish(channel, message, engine = nil)
      PubSub.publish(channel, message, engine)
    end

    # @return [Integer] 0: pub/sub is available, as in the drafts for Rack
    def pubsub?
      0
    end

    def inspect
      "#<Rondo::Client>"
    end
  end
end
