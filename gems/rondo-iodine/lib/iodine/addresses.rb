# frozen_string_literal: true

# Where a listener is: iodine's `:url`, `:address` and `:port` as an address of Rondo.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # Service, host, port or path of one listener.
    Place = Struct.new(:service, :host, :port, :path, :tls) do
      # @return [Boolean] whether its bytes are not HTTP
      def raw?
        service == :raw || tls&.protocols? || false
      end

      # @return [String] as Rondo takes it
      def uri
        return "unix://#{File.absolute_path(path)}" if path

        uri = Rondo::Address.tcp_uri(host || Rondo::Address.any_host, port)
        tls ? [uri.sub("tcp:", "ssl:"), Rondo::TLS.query(tls.options)].reject(&:empty?).join("?") : uri
      end

      # @return [String] as in messages
      def to_s
        path || [host, port].compact.join(":")
      end
    end

    # Reads them.
    module Addresses
      # scheme, then all before the path, then the path
      URL = %r{\A(?:(?<scheme>[a-z][a-z0-9+.-]*)://)?(?:[^@/]*@)?(?<host>\[[^\]]*\]|[^:/?#]*)(?::(?<port>[^/?#]*))?
               (?<path>/[^?#]*)?}xi
      SECURE = %w[tls ssl https wss].freeze

      module_function

      # @param options [Hash] of a listener, with defaults
      # @return [Place]
      def find(options)
        host = options[:address]
        host = nil unless host.is_a?(String) && !host.empty?
        place = Place.new(options[:service], host, number(options[:port]))
        place = of_url(options[:url], place) if options[:url].is_a?(String)
        place.service = service(place.service)
        settle(place).tap { |settled| settled.tls = tls(options) }
      end

      # @param options [Hash]
      # @return [TLS, nil] a name of the service that asks for it is enough
      def tls(options)
        options[:tls].is_a?(TLS) ? options[:tls] : (TLS.new("localhost") if secure?(options))
      end

      # @param name [Object] of a service: nil, a String or a Symbol
      # @return [Symbol] :raw, :http or :ws
      def service(name)
        case name.to_s[0]
        when "h" then :http
        when "w" then :ws
        else :raw
        end
      end

      # @param options [Hash]
      # @return [Boolean] whether the name of the service asks for TLS
      def secure?(options)
        name = options[:url].to_s[/\A[a-z]+(?=:)/i] || options[:service].to_s
        SECURE.include?(name.downcase)
      end

      def of_url(text, place)
        found = URL.match(text)
        host, path = found[:host], found[:path]
        port = found[:port].to_i
        port = nil unless port.between?(1, 65_535)
        host = nil if host.to_s.empty?
        place = Place.new(found[:scheme] || place.service, host&.delete("[]"), port)
        place.host = path if path && host.nil? && port.nil?
        place
      end
      private_class_method :of_url

      def number(port)
        port = port.is_a?(String) || port.is_a?(Integer) ? port.to_i : 0
        return port if port.between?(1, 65_535)

        Base.warning("Port number #{port} is too high, quietly ignored.") if port > 65_535
        nil
      end
      private_class_method :number

      # Without a port an address is the path of a socket.
      def settle(place)
        return place if place.port
        raise "Couldn't open listening socket." unless place.host

        Place.new(place.service, nil, nil, place.host)
      end
      private_class_method :settle
    end
  end
end
