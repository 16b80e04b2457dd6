# frozen_string_literal: true

# An authority for certificates of this machine: one of our own, or any other whose key can be read. Used by
# development.rb.
# SPDX-License-Identifier: MIT

require "etc"
require "openssl"
require "securerandom"
require "socket"
require "rondo/certificates/folder"

module Rondo
  module Certificates
    # Signs certificates for servers.
    class Authority
      DAY = 86_400
      # Days; Apple's programs refuse more than 825, public authorities more than 397.
      LEAF = 397
      OWN = 3650
      # Days before its end in which a certificate is replaced at a start.
      NEAR = 30
      # Clocks of virtual machines differ.
      BEFORE = 3600
      CURVE = "prime256v1"
      # What our own authority can sign, in OpenSSL's notation: a leak of its key opens no other site.
      CONSTRAINTS = %w[DNS:localhost DNS:.localhost DNS:.test IP:127.0.0.0/255.0.0.0
                       IP:::1/ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff].freeze
      # For people who meet it in a list of their system.
      NAME = "Rondo development authority"

      # @return [OpenSSL::X509::Certificate]
      attr_reader :certificate

      # @return [Array(Authority, String)] a new one of our own, and its key as PEM
      def self.create
        key = OpenSSL::PKey::EC.generate(CURVE)
        made = blank(key, OWN)
        # The owner tells it from those of other machines, a part of the key from others with the same owner.
        made.subject = OpenSSL::X509::Name.new([["O", NAME], ["CN", "#{NAME} #{owner} #{SecureRandom.hex(4)}"]])
        made.issuer = made.subject
        add_extensions(made, made, ["basicConstraints", "CA:TRUE,pathlen:0", true],
                       ["keyUsage", "keyCertSign,cRLSign", true],
                       ["nameConstraints", CONSTRAINTS.map { |name| "permitted;#{name}" }.join(","), true],
                       %w[subjectKeyIdentifier hash])
        [new(made.sign(key, "SHA256"), key), key.private_to_pem]
      end

      # @param host [String]
      # @return [Boolean] whether CONSTRAINTS allow it
      def self.may_sign?(host)
        host.match?(/\A(?:(?:[\w-]+\.)*localhost|(?:[\w-]+\.)+test|127(?:\.\d{1,3}){3}|::1)\z/)
      end

      # @param certificate [String] PEM
      # @param key [String] PEM
      # @return [Authority]
      # @raise [Failed] half a line
      def self.load(certificate, key)
        own, pair = OpenSSL::X509::Certificate.new(certificate), OpenSSL::PKey.read(key, "")
        return new(own, pair) if own.check_private_key(pair)

        raise Failed, "key and certificate do not belong together"
      rescue OpenSSL::OpenSSLError, ArgumentError => e
        raise Failed, e.message.lines.first.to_s.chomp
      end

      # @param key [OpenSSL::PKey::PKey] of the new certificate
      # @param days [Integer]
      # @return [OpenSSL::X509::Certificate] neither subject, nor names, nor signature
      def self.blank(key, days)
        made = OpenSSL::X509::Certificate.new
        made.version = 2
        made.serial = OpenSSL::BN.new(SecureRandom.hex(16), 16)
        now = Time.now
        made.not_before = now - BEFORE
        made.not_after = now + (days * DAY) - BEFORE
        made.public_key = key
        made
      end

      # @param made [OpenSSL::X509::Certificate]
      # @param issuer [OpenSSL::X509::Certificate]
      # @param rows [Array<Array>] name, value, and whether it is critical
      # @return [void]
      def self.add_extensions(made, issuer, *rows)
        factory = OpenSSL::X509::ExtensionFactory.new(issuer, made)
        rows.each { |row| made.add_extension(factory.create_extension(*row)) }
      end

      def self.owner
        "#{Etc.getpwuid&.name || Process.uid}@#{Socket.gethostname}".gsub(/[^\w@.-]/, "_")[0, 40]
      end
      private_class_method :owner

      # @param certificate [OpenSSL::X509::Certificate]
      # @param key [OpenSSL::PKey::PKey]
      def initialize(certificate, key)
        @certificate = certificate
        @key = key
      end

      # @return [String]
      def inspect
        "#<#{self.class} #{@certificate.subject}>"
      end

      # @param days [Integer]
      # @return [Boolean] whether it is valid now and for so many days
      def good_for?(days)
        now = Time.now
        @certificate.not_before <= now && @certificate.not_after > now + (days * DAY)
      end

      # @param names [Array<String>] hosts and addresses; the first one names it
      # @return [String] PEM of a new certificate and its key
      def issue(names)
        key = OpenSSL::PKey::EC.generate(CURVE)
        made = Authority.blank(key, LEAF)
        made.not_after = [made.not_after, @certificate.not_after].min
        made.subject = OpenSSL::X509::Name.new([["CN", names.first[0, 64]]])
        made.issuer = @certificate.subject
        Authority.add_extensions(made, @certificate, ["basicConstraints", "CA:FALSE", true],
                                 ["keyUsage", "digitalSignature", true], %w[extendedKeyUsage serverAuth],
                                 ["subjectAltName", names.map { |name| san(name) }.join(",")], *identifier)
        made.sign(@key, "SHA256").to_pem + key.private_to_pem
      end

      private

      def identifier
        @certificate.subject_key_identifier ? [%w[authorityKeyIdentifier keyid]] : []
      end

      def san(name)
        name.match?(/\A[\d.]+\z|:/) ? "IP:#{name}" : "DNS:#{name}"
      end
    end
  end
end
