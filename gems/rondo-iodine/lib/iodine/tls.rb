# frozen_string_literal: true

# Certificates of a listener, as iodine takes them, become the options of an ssl:// address (docs/TLS.md).
# SPDX-License-Identifier: MIT

module Iodine
  # What a listener with TLS shows and trusts. The same object may be given to several listeners.
  class TLS
    # Whether there is TLS.
    SUPPORTED = true

    # @see #use_certificate
    def initialize(*arguments)
      @certificates = []
      @protocols = {}
      use_certificate(*arguments) unless arguments.empty?
    end

    # @overload use_certificate(server_name, certificate = nil, private_key = nil, password = nil)
    #   @param server_name [String, nil] with this alone: a certificate for development
    #   @param certificate [String] path of a PEM file
    #   @param private_key [String] path of a PEM file
    #   @param password [String] of the key
    # @overload use_certificate(server_name:, certificate:, private_key:, password:)
    # @return [self]
    # @raise [ArgumentError, TypeError]
    def use_certificate(*arguments)
      words = words_of(arguments)
      words.compact.each { |word| Base.check(word, String) }
      _name, certificate, key, password = words
      @certificates << { certificate: certificate, key: key, password: password } if certificate && key
      self
    end

    # Clients need a certificate that this authority has signed.
    # @param certificate [String] path of a PEM file
    # @return [self]
    # @raise [TypeError]
    def trust(certificate)
      Base.check(certificate, String)
      @trusted = certificate
      self
    end

    # Offers a protocol to the peer of {Iodine.connect}. A listener cannot choose one.
    # @param name [String]
    # @yieldreturn [Object] the handler
    # @return [self]
    # @raise [TypeError, LocalJumpError]
    def on_protocol(name, &block)
      Base.check(name, String)
      Base.need_block(block)
      @protocols[name] = block
      self
    end

    # @api private
    # @param handler [Object, nil] in place of that of the protocol
    # @return [Array(Object, Hash)] what Rondo.connect takes
    # @raise [Rondo::Error] one line
    def outgoing(handler)
      raise Rondo::Error, "Iodine.connect: several protocols are not in this version" if @protocols.size > 1

      first = @certificates.first
      raise Rondo::Error, "Iodine.connect: a key with a password is not in this version" if first && first[:password]

      options = { ca: @trusted, cert: first&.fetch(:certificate), key: first&.fetch(:key) }.compact
      options[:alpn] = @protocols.keys if @protocols.any?
      [handler || @protocols.values.first&.call, options]
    end

    # @api private
    # @return [Hash{Symbol => Object}] as the verb ssl_bind takes them
    # @raise [Rondo::Error] one line
    def options
      raise Rondo::Error, "Iodine.listen: protocols of TLS are not in this version" if @protocols.any?

      first, *more = @certificates.map { |each| pair(each) }
      options = first || {}
      options = options.merge(certs: more) unless more.empty?
      options = options.merge(ca: @trusted, verify_mode: "force_peer") if @trusted
      options
    end

    private

    def words_of(arguments)
      if arguments.size == 1 && arguments.first.is_a?(Hash)
        return arguments.first.values_at(:server_name, :certificate, :private_key, :password)
      end
      return arguments if arguments.size.between?(1, 4)

      raise ArgumentError, "expecting 1..4 arguments or named arguments."
    end

    def pair(each)
      return { cert: each[:certificate], key: each[:key] } unless each[:password]

      require "openssl"
      key = OpenSSL::PKey.read(File.read(each[:key]), each[:password])
      { cert_pem: File.read(each[:certificate]), key_pem: key.private_to_pem }
    end
  end
end
