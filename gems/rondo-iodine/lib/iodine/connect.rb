# frozen_string_literal: true

# Connections that the application asks for: Rondo.connect (docs/CONNECT.md) with iodine's settings, and sockets that it
# has connected itself.
# SPDX-License-Identifier: MIT

require "iodine/websocket_call"

module Iodine
  # @api private
  module Base
    # What `connect` gets.
    module Outgoing
      # The settings that are counted in seconds have one byte.
      MOST_SECONDS = 255

      module_function

      # @param settings [Hash]
      # @return [Array(String, Adapter, Hash)] where to, what is called, and options
      # @raise [ArgumentError, TypeError, RuntimeError]
      def read(settings)
        Base.check(settings, Hash)
        options = DEFAULT_SETTINGS.merge(settings.compact)
        handler = Base.handler_of(options, nil)
        url, handler, more = websocket?(options) ? websocket(options, handler) : raw(options, handler)
        [url, Adapter.new(handler, seconds: seconds(options[:ping])), more]
      end

      def websocket?(options)
        scheme = options[:url][/\A[a-z][a-z0-9+.-]*(?=:)/i] if options[:url].is_a?(String)
        Addresses.service(scheme || options[:service]) == :ws
      end
      private_class_method :websocket?

      # With protocols it is as raw as with any other service.
      def websocket(options, handler)
        call = WebSocketCall.new(options)
        tls = call.tls
        tls&.protocols? ? [call.raw_url, tls.handler(handler), tls.outgoing] : [call.url, handler, call.options]
      end
      private_class_method :websocket

      def raw(options, handler)
        place = place_of(options)
        place.tls ? [url(place), place.tls.handler(handler), place.tls.outgoing] : [url(place), handler, {}]
      end
      private_class_method :raw

      def place_of(options)
        if Addresses.service(options[:service]) == :http && !options[:url]
          raise "Couldn't open client socket."
        end

        place = Addresses.find(options)
        raise "HTTP client connections aren't supported yet." if place.service == :http

        place
      end
      private_class_method :place_of

      def url(place)
        return "unix://#{place.path}" if place.path

        uri = Rondo::Address.tcp_uri(place.host || "localhost", place.port)
        place.tls ? uri.sub("tcp:", "tls:") : uri
      end
      private_class_method :url

      def seconds(ping)
        return unless ping.is_a?(Integer) && !ping.zero?
        return ping if ping.between?(1, MOST_SECONDS)

        Base.warning(":ping value over #{MOST_SECONDS} will be silently ignored.")
        nil
      end
      private_class_method :seconds
    end

    # Before the server is there as well: later nobody would hear of it.
    # @param descriptor [Integer]
    # @return [BasicSocket] a duplicate
    # @raise [ArgumentError, SystemCallError] it is no stream, or has no peer
    def self.connected(descriptor)
      socket = BasicSocket.for_fd(descriptor).tap { |each| each.autoclose = false }
      socket.remote_address
      raise ArgumentError unless socket.getsockopt(:SOCKET, :TYPE).int == Socket::SOCK_STREAM

      socket.dup
    end
  end

  class << self
    # Makes a connection, at once or when the server begins. If that fails, the handler gets `on_close(nil)`.
    # @param settings [Hash] url, service, address, port, path, handler, tls, ping; of WebSockets also headers, cookies
    # @return [Iodine]
    # @raise [ArgumentError, TypeError, RuntimeError]
    def connect(settings)
      url, adapter, options = Base::Outgoing.read(settings)
      Rondo.connect(url, handler: adapter, **options)
      self
    rescue Rondo::AddressError => e
      raise e.message, cause: nil
    end

    # Makes a connection of a socket. The server has a duplicate of it.
    # @param descriptor [Integer]
    # @param handler [Object]
    # @return [Object] the handler
    # @raise [TypeError, IOError]
    def attach_fd(descriptor, handler)
      Base.check(descriptor, Integer)
      socket = Base.connected(descriptor)
      return attach(socket, handler) if Rondo::PubSub.core

      Rondo.run { attach(socket, handler) } # when it serves
      handler
    rescue ArgumentError, SystemCallError
      raise IOError, "invalid fd."
    end

    private

    def attach(socket, handler)
      Rondo.attach_fd(socket, Base::Adapter.new(handler))
      handler
    ensure
      socket.close
    end
  end
end
