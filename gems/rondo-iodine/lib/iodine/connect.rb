# frozen_string_literal: true

# Connections that the application asks for: Rondo.connect (docs/CONNECT.md) with iodine's settings, and sockets that it
# has connected itself.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # What `connect` gets.
    module Outgoing
      module_function

      # @param settings [Hash]
      # @return [Array(String, Adapter, Hash)] where to, what is called, and options
      # @raise [ArgumentError, TypeError, RuntimeError]
      # @raise [Rondo::Error] one line: it is not in this version
      def read(settings)
        Base.check(settings, Hash)
        options = DEFAULT_SETTINGS.merge(settings.compact)
        raise ArgumentError, "a :handler is required." if options[:handler].nil?

        place = place_of(options)
        handler, more = place.tls ? place.tls.outgoing(options[:handler]) : [options[:handler], {}]
        [url(place), Adapter.new(handler), more]
      end

      def place_of(options)
        if Addresses.service(options[:service]) == :http && !options[:url]
          raise "Couldn't open client socket."
        end

        place = Addresses.find(options)
        raise "HTTP client connections aren't supported yet." if place.service == :http
        raise Rondo::Error, "Iodine.connect: WebSockets are not in this version" if place.service == :ws

        place
      end
      private_class_method :place_of

      def url(place)
        return "unix://#{place.path}" if place.path

        uri = Rondo::Address.tcp_uri(place.host || "localhost", place.port)
        place.tls ? uri.sub("tcp:", "tls:") : uri
      end
      private_class_method :url
    end
  end

  class << self
    # Makes a connection, at once or when the server begins. If that fails, the handler gets `on_close(nil)`.
    # @param settings [Hash] url, service, address, port, handler
    # @return [Iodine]
    # @raise [ArgumentError, TypeError, RuntimeError]
    def connect(settings)
      url, adapter, options = Base::Outgoing.read(settings)
      Rondo.connect(url, handler: adapter, **options)
      self
    end

    # Makes a connection of a socket. The server has a duplicate of it.
    # @param descriptor [Integer]
    # @param handler [Object]
    # @return [Object] the handler
    # @raise [TypeError, IOError]
    def attach_fd(descriptor, handler)
      Base.check(descriptor, Integer)
      socket = BasicSocket.for_fd(descriptor).tap { |each| each.autoclose = false }.dup
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
