# frozen_string_literal: true

# Certificates of a listener, as iodine takes them, become the options of an ssl:// address (docs/TLS.md).
# SPDX-License-Identifier: MIT

require "iodine/protocols"

module Iodine
  # What a listener with TLS shows and trusts. The same object may be given to several listeners.
  class TLS
    # Whether there is TLS.
    SUPPORTED = true

    # @overload initialize
    # @overload initialize(server_name, certificate = nil, private_key = nil, password = nil)
    #   As {#use_certificate}.
    # @raise [ArgumentError, TypeError]
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

    # The handler of connections whose handshake agrees upon this protocol (ALPN). Where it agrees upon none, it is the
    # one that was added first. Handlers of listeners and of {Iodine.connect} are not asked then, and nothing is HTTP.
    # @param name [String] up to 255 bytes
    # @yieldreturn [Object] the handler
    # @return [self]
    # @raise [TypeError, LocalJumpError]
    def on_protocol(name, &block)
      Base.check(name, String)
      Base.need_block(block)
      return tap { Base.error("ALPN protocol names are limited to 255 bytes.") } if name.bytesize > 255

      @protocols[name] = block
      self
    end

    # @return [String] without passwords
    def inspect
      "#<Iodine::TLS>"
    end

    # @api private
    # @param handler [Object] for connections without protocols, and for those that could not be made
    # @return [Object]
    def handler(handler)
      protocols? ? Base::Protocols.new(@protocols, handler) : handler
    end

    # @api private
    # @return [Boolean] whether the handshake decides about the handler
    def protocols?
      @protocols.any?
    end

    # @api private
    # @return [Hash] options of Rondo.connect
    def outgoing
      first = @certificates.first
      options = { ca: @trusted, cert: first&.fetch(:certificate), key: first&.fetch(:key),
                  key_password: first && first[:password] }.compact
      protocols? ? options.merge(alpn: @protocols.keys) : options
    end

    # @api private
    # @return [Hash{Symbol => Object}] as the verb ssl_bind takes them
    # @raise [RuntimeError] a key cannot be read
    def options
      first, *more = @certificates.map { |each| pair(each) }
      options = first || {}
      options = options.merge(certs: more) unless more.empty?
      options = options.merge(ca: @trusted, verify_mode: "force_peer") if @trusted
      protocols? ? options.merge(alpn: @protocols.keys) : options
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
    rescue SystemCallError, OpenSSL::PKey::PKeyError => e
      raise "#{each[:key]}: #{e.message}", cause: nil
    end
  end
end
