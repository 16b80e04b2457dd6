# frozen_string_literal: true

# A WebSocket that the application asks for: iodine's settings as the URL and the options of Rondo.connect.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # Where to, and what the request has.
    class WebSocketCall
      # The authority, then path and query.
      URL = %r{\A(?:[a-z][a-z0-9+.-]*://)?(?:[^@/?#]*@)?(?<host>[^/?#]*)(?<target>[/?][^#]*)?}i
      SUBPROTOCOLS = "sec-websocket-protocol"

      # @param options [Hash] of `connect`, with defaults
      # @raise [RuntimeError] there is no host
      def initialize(options)
        @given = options
        @tls = Addresses.tls(options)
      end

      # @return [TLS, nil]
      attr_reader :tls

      # @return [String] of the same place without a WebSocket
      def raw_url
        scheme, authority = url.match(%r{\A(wss?)://([^/?]+)}).captures
        port = authority.match?(/:\d+\z/) ? "" : ":#{Rondo::Outgoing::PORTS[scheme]}"
        "tls://#{authority}#{port}"
      end

      # @return [String]
      def url
        host, target = @given[:url].is_a?(String) ? of_url : of_parts
        raise "Couldn't open client socket." if host.empty?

        "#{@tls ? "wss" : "ws"}://#{host}#{target}"
      end

      # @return [Hash{Symbol => Object}]
      # @raise [Rondo::Error] one line
      def options
        fields = texts(:headers, "header")
        protocols, fields = fields.partition { |name, _| name.casecmp?(SUBPROTOCOLS) }
        { headers: with_cookies(allowed(fields)), protocols: protocols.flat_map { |_, value| value.split(/\s*,\s*/) },
          **(@tls ? @tls.outgoing.merge(alpn: ["http/1.1"]) : {}) }
      end

      private

      def of_url
        found = URL.match(@given[:url])
        [found[:host], found[:target]]
      end

      # A Unix socket has no host.
      def of_parts
        host = @given[:address].is_a?(String) ? @given[:address] : ""
        return ["", ""] if host.include?("/")

        host = "[#{host}]" if host.include?(":") && !host.start_with?("[")
        path = @given[:path].is_a?(String) ? @given[:path] : "/"
        ["#{host}#{":#{@given[:port]}" if @given[:port].to_i.positive? && !host.empty?}", path]
      end

      # @return [Array<Array(String, String)>] what is no text is ignored with a warning, as iodine does it
      def texts(key, what)
        pairs = @given[key].is_a?(Hash) ? @given[key] : {}
        pairs.filter_map do |name, value|
          next ignore("invalid key type in #{what} hash, ignored.") unless text?(name)

          values = value.is_a?(Array) ? value.select { |each| text?(each) } : [value]
          next ignore("invalid #{what} value type, ignored.") unless values.all? { |each| text?(each) }

          [name.to_s, values.join(", ")]
        end
      end

      def text?(value)
        value.is_a?(String) || value.is_a?(Symbol)
      end

      # Without the fields that the handshake has itself.
      def allowed(fields)
        own, others = fields.partition { |name, _| name.match?(Rondo::Calling::OWN) }
        own.each { |field| ignore("the header #{field.first} belongs to the handshake, ignored.") }
        others
      end

      def with_cookies(fields)
        cookies = texts(:cookies, "cookie").map { |name, value| "#{name}=#{value}" }
        return fields.to_h if cookies.empty?

        before, others = fields.partition { |name, _| name.casecmp?("cookie") }
        others.to_h.merge("Cookie" => [*before.map(&:last), *cookies].join("; "))
      end

      # @return [nil]
      def ignore(message)
        Base.warning(message)
        nil
      end
    end
  end
end
