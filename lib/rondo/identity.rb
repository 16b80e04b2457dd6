# frozen_string_literal: true

# What the env tells of a TLS connection: the certificate of its client, and with the setting tls_env how the
# connection is protected. The extension (ext/rondo/rack/rb_identity.c) asks once for each connection.
# SPDX-License-Identifier: MIT

module Rondo
  # Makes the keys that requests of a connection have in addition.
  # @api private
  module Identity
    module_function

    # @param asked [Boolean] whether the listener asks clients for certificates
    # @param der [String, nil] the client's certificate
    # @param invalid [String, nil] why that is not valid
    # @param protocol [String, nil]
    # @param cipher [String, nil]
    # @param server_name [String, nil] what the client asked for
    # @return [Hash{String => Object}]
    def keys(asked, der, invalid, protocol, cipher, server_name)
      found = { "SSL_PROTOCOL" => protocol, "SSL_CIPHER" => cipher, "SSL_TLS_SNI" => server_name }.compact
      found.update(client(der, invalid)) if asked
      found.transform_values! { |value| value.is_a?(String) ? value.freeze : value }.freeze
    end

    # Loads what {.keys} needs, before there is a request.
    # @param tls [TLS::Material]
    # @return [void]
    def prepare(tls)
      require "openssl" unless tls[:verify_mode] == :none
    end

    # Puma's key, and those of Apache's mod_ssl.
    def client(der, invalid)
      return { "puma.peercert" => nil, "SSL_CLIENT_VERIFY" => "NONE" } unless der

      require "openssl"
      certificate = OpenSSL::X509::Certificate.new(der)
      { "puma.peercert" => certificate, "SSL_CLIENT_VERIFY" => invalid ? "FAILED:#{invalid}" : "SUCCESS",
        "SSL_CLIENT_CERT" => certificate.to_pem, "SSL_CLIENT_M_SERIAL" => certificate.serial.to_s(16),
        "SSL_CLIENT_S_DN" => certificate.subject.to_s(OpenSSL::X509::Name::RFC2253),
        "SSL_CLIENT_I_DN" => certificate.issuer.to_s(OpenSSL::X509::Name::RFC2253) }
    end
    private_class_method :client
  end
end
