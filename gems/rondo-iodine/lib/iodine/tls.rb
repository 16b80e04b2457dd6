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
      @named = false
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
      @named = true
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

    # @raise [Rondo::Error] always: protocols of applications in ALPN are not in this version
    def on_protocol(name, &block)
      Base.check(name, String)
      Base.need_block(block)
      raise Rondo::Error, "Iodine::TLS#on_protocol is not in this version"
    end

    # @api private
    # @return [Hash{Symbol => Object}] as the verb ssl_bind takes them
    def options
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
