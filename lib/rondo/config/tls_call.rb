# frozen_string_literal: true

# The TLS options of an outgoing connection, and the files that they name: process/outgoing.rb uses them, the core
# checks what was read (ext/rondo/tls/tls_client.h).
# SPDX-License-Identifier: MIT

require "digest"
require "rondo/config/tls"

module Rondo
  module TLS
    # What a peer has to prove, and what it is shown.
    class Call
      # Where systems have the certificates of all authorities: Debian, Fedora, openSUSE, Alpine.
      BUNDLES = %w[/etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem
                   /etc/ssl/cert.pem].freeze
      LARGEST = 8 << 20
      NAME_MAX = 255

      # @param url [String] for messages
      # @param host [String] of the URL
      # @param options [Hash{Symbol => Object}] verify [Boolean] false: anybody may be the peer; ca [String] a PEM file
      #   in place of the system's authorities; cert, key [String] PEM files for a peer that asks, key_password;
      #   server_name [String] in place of the host of the URL; alpn [Array<String>] names of protocols
      # @raise [AddressError] this build has no TLS
      # @raise [ArgumentError, TypeError] an option
      def initialize(url, host, options)
        raise AddressError, "cannot connect to #{url}: this build has no TLS" unless TLS.library

        @url = url
        check(options)
        @verifies = options[:verify] != false
        @ca, @certificate, @key = options.values_at(:ca, :cert, :key).map { |path| path && File.expand_path(path) }
        @password = options[:key_password]
        @name = options[:server_name] || host
        @protocols = TLS.packed(Array(options[:alpn]))
      end

      # There may be a password.
      # @return [String]
      def inspect
        "#<#{self.class}>"
      end

      # Read anew for each connection: files may have been replaced.
      # @return [Material]
      # @raise [AddressError] one line: a file
      def material
        ca = @verifies ? @ca || bundle : nil
        found = { address: @url, peer_name: @name, verifies: @verifies, ca: ca && read(ca), ca_name: ca,
                  pair: @certificate && pair, protocols: @protocols }
        Material.new.update(found.compact, name: digest(found))
      end

      private

      def check(options)
        verify, certificate, key, name, protocols = options.values_at(:verify, :cert, :key, :server_name, :alpn)
        unless [nil, true, false].include?(verify)
          raise ArgumentError, "verify must be true or false, not #{verify.inspect}"
        end
        raise ArgumentError, "cert and key go together" if certificate.nil? != key.nil?
        raise ArgumentError, "key_password needs key" if options[:key_password] && key.nil?

        texts = options.slice(:ca, :cert, :key, :key_password, :server_name).compact
        texts.each { |option, value| check_text(option, value) }
        unless name.nil? || name.bytesize.between?(1, NAME_MAX)
          raise ArgumentError, "server_name has from 1 to #{NAME_MAX} bytes"
        end

        check_protocols(protocols) if protocols
      end

      def check_text(option, value)
        raise TypeError, "#{option} must be a String, not #{value.class}" unless value.is_a?(String)
        raise ArgumentError, "#{option} has a null byte" if value.include?("\0")
      end

      def check_protocols(names)
        return if names.is_a?(Array) && names.size <= PROTOCOLS_MAX &&
                  names.all? { |name| name.is_a?(String) && name.bytesize.between?(1, 255) }

        raise ArgumentError, "alpn must be an Array of up to #{PROTOCOLS_MAX} names, not #{names.inspect}"
      end

      def pair
        { certificate: read(@certificate), key: read(@key), certificate_name: @certificate, key_name: @key,
          password: @password }.compact
      end

      # A folder of certificates would be searched in the handshake, so it is not read.
      def bundle
        [ENV.fetch("SSL_CERT_FILE", nil), *BUNDLES].compact.find { |path| File.file?(path) } or
          refuse("a list of authorities is missing on this machine; name one with ca")
      end

      def read(path)
        bytes = File.binread(path, LARGEST + 1).to_s
        refuse("#{path}: it is larger than #{LARGEST} bytes") if bytes.bytesize > LARGEST
        bytes
      rescue SystemCallError => e
        refuse("#{path}: #{SystemCallError.new(nil, e.errno).message}")
      end

      # Connections with the same of everything share what is made of it.
      def digest(found)
        parts = [*found.values_at(:verifies, :ca, :protocols), *found[:pair]&.values]
        Digest::SHA256.hexdigest(parts.map { |part| "#{part.to_s.bytesize}:#{part}".b }.join)
      end

      def refuse(why)
        raise AddressError, "cannot connect to #{@url}: #{why}"
      end
    end
  end
end
