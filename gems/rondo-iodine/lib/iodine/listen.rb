# frozen_string_literal: true

# Listeners. They are remembered until `Iodine.start` (running.rb), but an address that is taken is an error at once.
# SPDX-License-Identifier: MIT

module Iodine
  # @api private
  module Base
    # A listener that was asked for.
    Listener = Struct.new(:place, :handler, :options)

    # Keys that `listen` knows.
    KNOWN = %i[url handler app service address port path tls log public timeout ping max_headers max_body max_msg
               max_clients method headers cookies body].freeze

    @listeners = []

    class << self
      # @return [Array<Listener>]
      attr_reader :listeners

      # @param given [Hash]
      # @param block [Proc, nil]
      # @return [Listener]
      # @raise [ArgumentError, TypeError, RuntimeError]
      def listener(given, block)
        check(given, Hash)
        options = DEFAULT_SETTINGS.merge(given.compact)
        handler = handler_of(options, block)
        (given.keys - KNOWN).each { |key| warning("Iodine.listen: unknown key #{key.inspect}, ignored.") }
        place = Addresses.find(options)
        try(place) unless restarted?
        Listener.new(place, handler, options)
      end

      # @param options [Hash]
      # @param block [Proc, nil]
      # @return [Object]
      # @raise [ArgumentError] there is none
      def handler_of(options, block)
        handler = options[:handler]
        if handler.nil? && options[:app]
          warning(":app is deprecated in Iodine.listen and Iodine.connect. Use :handler")
          handler = options[:app]
        end
        handler = block if handler.nil?
        raise ArgumentError, "a :handler is required." if handler.nil?

        handler
      end

      private

      # Only the first process opens sockets itself; after a restart they are there already.
      def restarted?
        ENV.key?("RONDO_MOLD") || ENV.key?(Rondo::Inherited::VARIABLE)
      end

      def try(place)
        return try_path(place.path) if place.path

        info = Addrinfo.tcp(place.host || Rondo::Address.any_host, place.port)
        socket = Socket.new(info.afamily, :STREAM)
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        socket.bind(info) # and not listen: nobody shall be accepted and then dropped
      rescue SystemCallError, SocketError
        raise "Couldn't open listening socket."
      ensure
        socket&.close
      end

      # A file that nobody listens at is replaced, as Rondo does it.
      def try_path(path)
        UNIXSocket.new(path).close
        raise Errno::EADDRINUSE
      rescue Errno::ENOENT, Errno::ECONNREFUSED
        raise Errno::EACCES unless File.writable?(File.dirname(path))
      end
    end
  end

  # @param settings [Hash] url, service, address, port, handler and the settings of a listener
  # @yield in place of the handler
  # @return [Object] the handler
  # @raise [ArgumentError, TypeError]
  # @raise [RuntimeError] nothing can listen there
  def self.listen(settings, &block)
    listener = Base.listener(settings, block)
    Base.listeners << listener
    listener.handler
  end
end
