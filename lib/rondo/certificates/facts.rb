# frozen_string_literal: true

# What people want to know of a certificate that is served: its names, its end, whether its key is strong. For
# `rondo check`, the control server and the log. The core alone judges whether it can be served (tls/tls_pair.h).
# SPDX-License-Identifier: MIT

require "openssl"

module Rondo
  module Certificates
    # Of one certificate, with its file.
    class Facts
      # Days; fewer are worth a warning.
      SOON = 14
      WEAKEST_RSA = 2048
      DAY = 86_400
      NAMES_SHOWN = 4

      # @return [String] of the file with the certificate
      attr_reader :file
      # @return [Array<String>] of hosts, and addresses
      attr_reader :names
      # @return [Time]
      attr_reader :expires_at

      # @param shown [Hash{String => Array<Hash>}] by URL, see {TLS.shown}
      # @return [Hash{String => Array<Facts>}]
      def self.of(shown)
        shown.transform_values do |pairs|
          pairs.map { |pair| new(pair[:certificate], pair[:certificate_name], pair[:key_name]) }
        end
      end

      # When certificates are shown: the log is told which expire soon, the control server of all.
      # @param shown [Hash{String => Array<Hash>}] by URL, see {TLS.shown}
      # @param log [Logger]
      # @param control [Control, nil]
      # @return [void]
      def self.tell(shown, log, control)
        facts = of(shown)
        facts.values.flatten.uniq(&:file).filter_map(&:soon).each { |line| log.say "! #{line}" }
        control&.show_certificates(facts)
      end

      # @param pem [String] the certificate comes first
      # @param file [String]
      # @param key_file [String]
      def initialize(pem, file, key_file)
        @chain = OpenSSL::X509::Certificate.load(pem)
        @file = file
        @key_file = key_file
        @certificate = @chain.first
        @names = names_of(@certificate)
        @expires_at = @certificate.not_after
      end

      # @param now [Time]
      # @return [Integer] whole ones; negative: it has expired
      def days_left(now = Time.now)
        ((@expires_at - now) / DAY).floor
      end

      # @return [String] "server.pem: localhost, 127.0.0.1; 30 days left"
      def line(now = Time.now)
        shown = @names.first(NAMES_SHOWN)
        shown << "… (#{@names.size})" if @names.size > NAMES_SHOWN
        "#{@file}: #{shown.join(", ")}; #{days_left(now)} days left"
      end

      # @return [Array<String>] what should be changed, one line each
      def warnings(now = Time.now)
        [soon(now), weak, nameless, loose, readable].compact
      end

      # @return [String, nil] if it expires soon
      def soon(now = Time.now)
        "the certificate in #{@file} expires on #{@expires_at.utc.strftime("%Y-%m-%d")}" if days_left(now) < SOON
      end

      private

      def weak
        key = @certificate.public_key
        return unless key.is_a?(OpenSSL::PKey::RSA) && key.n.num_bits < WEAKEST_RSA

        "the RSA key of #{@file} has #{key.n.num_bits} bits; #{WEAKEST_RSA} is the least that is safe"
      end

      def nameless
        "#{@file} has its name in the subject only, which browsers do not accept" unless extension
      end

      def loose
        at = (1...@chain.size).find { |index| @chain[index - 1].issuer != @chain[index].subject }
        "#{@file}: certificate #{at + 1} has not signed the one before it" if at
      end

      def readable
        mode = File.stat(@key_file).mode
        if mode.anybits?(0o044)
          "#{@key_file} can be read by others than its owner: mode #{format("%04o",
                                                                            mode & 0o7777)}"
        end
      rescue SystemCallError
        nil # PEM that a configuration file has itself
      end

      def extension
        @certificate.extensions.find { |one| one.oid == "subjectAltName" }
      end

      # OpenSSL writes "DNS:a.test, IP Address:::1".
      def names_of(certificate)
        found = extension&.value.to_s.split(", ").filter_map { |name| name[/\A(?:DNS|IP Address):(.+)\z/, 1] }
        found.empty? ? certificate.subject.to_a.filter_map { |kind, text,| text if kind == "CN" }.first(1) : found
      end
    end
  end
end
