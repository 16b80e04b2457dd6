# frozen_string_literal: true

# What an outgoing WebSocket asks for: its URL and options as parts of the request that
# ext/rondo/endpoint/websocket_call.c writes. outgoing.rb uses it.
# SPDX-License-Identifier: MIT

module Rondo
  # The handshake of a WebSocket that this process asks for (RFC 6455, section 4.1).
  # @api private
  class Calling
    TOKEN = /\A[!#$%&'*+\-.^_`|~0-9A-Za-z]+\z/
    # Fields that the handshake has itself, or that would frame a body.
    OWN = /\A(?:host|upgrade|connection|content-length|transfer-encoding|te|trailer|sec-websocket-.*)\z/i
    FIELDS_MAX = 16_384
    PROTOCOLS_MAX = 16

    # @param host [String] the value of the field Host
    # @param target [String] path and query
    # @param headers [Hash{String, Symbol => String}, nil] further fields
    # @param protocols [Array<String>, nil] names of sub-protocols, the best one first
    # @raise [ArgumentError] one of them
    def initialize(host, target, headers, protocols)
      @host = host
      @target = target
      @fields = fields(headers || {})
      @protocols = names(protocols || [])
    end

    # @return [Hash{Symbol => String}] for the core
    def to_h
      { host: @host, target: @target, fields: @fields, protocols: @protocols }
    end

    private

    def fields(headers)
      raise ArgumentError, "headers must be a Hash, not #{headers.class}" unless headers.is_a?(Hash)

      lines = headers.map { |name, value| line(name.to_s, value.to_s) }.join
      raise ArgumentError, "headers have more than #{FIELDS_MAX} bytes" if lines.bytesize > FIELDS_MAX

      lines
    end

    def line(name, value)
      raise ArgumentError, "#{name.inspect} is not the name of a header" unless name.b.match?(TOKEN)
      raise ArgumentError, "the header #{name} is the handshake's own" if name.match?(OWN)
      if value.b.match?(/[\0-\x08\x0a-\x1f\x7f]/n)
        raise ArgumentError, "the value of the header #{name} has a control character"
      end

      "#{name}: #{value}\r\n".b
    end

    def names(protocols)
      valid = protocols.is_a?(Array) && protocols.size <= PROTOCOLS_MAX && protocols.uniq.size == protocols.size &&
              protocols.all? { |name| name.is_a?(String) && name.bytesize <= 255 && name.match?(TOKEN) }
      return protocols.join(", ") if valid

      raise ArgumentError, "protocols must be an Array of up to #{PROTOCOLS_MAX} names, not #{protocols.inspect}"
    end
  end
end
