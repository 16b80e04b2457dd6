# frozen_string_literal: true

# Port 80 beside a port for TLS: tokens for authorities, redirects for everybody else. A native thread answers
# (ext/rondo/control/redirect.c); this opens its socket, and hands that on over a restart by exec.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/certificates/store"

module Rondo
  module Certificates
    # The redirects of the settings.
    class Door
      # For a program without a server: nil where another program has the port, which will answer.
      # @param domains [Domains]
      # @param settings [Settings::Resolved]
      # @return [Door, nil]
      # @raise [Failed] one line
      def self.try(domains, settings)
        for_settings(domains, settings)
      rescue AddressError
        nil
      end

      # @param domains [Domains]
      # @param settings [Settings::Resolved]
      # @param inherited [Inherited, nil]
      # @return [Door, nil] nil: the settings want none
      # @raise [AddressError, Failed] one line
      def self.for_settings(domains, settings, inherited = nil)
        return if settings[:tls_http_port].zero?

        uri = Address.tcp_uri(settings[:host] || Address.any_host, settings[:tls_http_port])
        new(Store.new(domains.storage).webroot, settings[:tls_port]).tap { |door| door.listen(uri, inherited) }
      end

      # @param webroot [String] path
      # @param https_port [Integer]
      def initialize(webroot, https_port)
        @core = Redirect.new(webroot, https_port)
        @descriptors = []
      end

      # Its URL with its descriptor, for the next program.
      # @return [Array<Array(String, Integer)>]
      attr_reader :descriptors

      # @return [Array<String>]
      def urls
        @descriptors.map(&:first)
      end

      # @return [Boolean] whether another program opened its sockets
      def foreign?
        @foreign
      end

      # Binds, and answers from then on.
      # @param uri [String]
      # @param inherited [Inherited, nil]
      # @return [void]
      # @raise [AddressError] one line
      def listen(uri, inherited = nil)
        found = inherited ? inherited.descriptors_for(uri) : []
        @foreign = found.any? { |number| !inherited.own?(number) }
        addresses = found.map { |number| { kind: :fd, fd: number, scheme: "http" } }
        addresses = Address.resolve(Address.parse(uri)) if addresses.empty?
        addresses.each { |address| add(address) }
        @core.start
      rescue AddressError
        close
        raise
      end

      # @return [void]
      def close
        @core.close
      end

      private

      def add(address)
        opened = @core.listen(address)
        @descriptors << opened.values_at(:url, :fd)
      rescue AddressError => e
        raise PortHolder.explain(e, address[:port])
      end
    end
  end
end
