# frozen_string_literal: true

# One certificate from an ACME server (RFC 8555), by the gem acme-client: account, order, the token that the server
# looks for on port 80, the signing request, the chain.
# SPDX-License-Identifier: MIT

require "openssl"
require "time"
require "rondo/certificates/store"

module Rondo
  module Certificates
    # The server refuses, or cannot be reached: half a line, and how long it wants to be left alone.
    class Refused < Failed
      # @return [Numeric, nil] seconds
      attr_reader :retry_after

      # @param message [String]
      # @param retry_after [Numeric, nil]
      def initialize(message, retry_after: nil)
        super(message)
        @retry_after = retry_after
      end
    end

    # It cannot be reached at all, so there is no use in asking for another name.
    class Unreachable < Refused; end

    # Talks to the server.
    class Order
      # Seconds, each with the one before doubled, unless the server names another time.
      FIRST_WAIT = 0.25
      LONGEST_WAIT = 10
      # For one certificate.
      PATIENCE = 300
      # Servers refuse good nonces now and then (RFC 8555, section 6.5).
      NONCE_TRIES = 10
      OPEN_TIMEOUT = 10
      READ_TIMEOUT = 30
      MISSING = "the gem acme-client is missing: run `gem install acme-client`, or add it to the Gemfile"
      # Bytes of what a server says that go to the log.
      LONGEST = 400

      # @param wish [String, Numeric, Time, nil] of the server: seconds or a date (RFC 9110, section 10.2.3), as the gem
      #   hands it on
      # @return [Float, nil] seconds
      def self.seconds(wish, now = Time.now)
        Float(wish.to_s, exception: false) || ((wish.is_a?(Time) ? wish : Time.httpdate(wish.to_s)) - now)
      rescue ArgumentError
        nil
      end

      # @param wish [String, nil] see {.seconds}
      # @param otherwise [Numeric] seconds
      # @return [Numeric] seconds to wait; one that wants none does not get a request every moment
      def self.pause(wish, otherwise, now = Time.now)
        seconds = seconds(wish, now)
        seconds&.positive? ? seconds : otherwise
      end

      # @return [void]
      # @raise [Failed] half a line
      def self.load_gem
        require "acme-client"
      rescue LoadError => e
        raise Failed, e.path.to_s.start_with?("acme") ? MISSING : "cannot load the gem acme-client: #{e.message}"
      end

      # @param domains [Domains]
      # @param store [Store]
      def initialize(domains, store)
        @domains = domains
        @store = store
      end

      # Opens the account; {#fetch} does it if nobody has.
      # @return [void]
      # @raise [Refused, Failed] half a line
      def open
        Order.load_gem
        translate_errors { client }
      end

      # @param name [String] of a host
      # @return [OpenSSL::X509::Certificate] it is kept in the store
      # @raise [Refused, Failed] half a line
      def fetch(name)
        Order.load_gem
        @until = now + PATIENCE
        translate_errors do
          order = client.new_order(identifiers: [name])
          order.authorizations.each { |authorization| prove(authorization) }
          keep(name, order)
        end
      end

      private

      def client
        @client ||= begin
          made = Acme::Client.new(private_key: @store.account_key(@domains.directory), directory: @domains.directory,
                                  connection_options: connection_options, bad_nonce_retry: NONCE_TRIES)
          open_account(made)
          made
        end
      end

      def connection_options
        { request: { open_timeout: OPEN_TIMEOUT, timeout: READ_TIMEOUT },
          ssl: @domains.directory_ca ? { ca_file: @domains.directory_ca } : {} }
      end

      # An account of this key that is there already is the answer, too.
      def open_account(client)
        terms = client.meta && client.terms_of_service
        if terms && !@domains.agree
          raise Failed, "#{URI(@domains.directory).host} wants its terms to be agreed to (tls_agree): #{terms}"
        end

        contact = [*(@domains.email && "mailto:#{@domains.email}")]
        account = client.new_account(contact: contact, terms_of_service_agreed: true,
                                     external_account_binding: binding_key)
        client.account_update(contact: contact) if contact.any? && [*account.contact].sort != contact.sort
      end

      def binding_key
        key = @domains.eab_key
        return if key.nil? && @domains.eab_kid.nil?
        raise Failed, "tls_eab_kid needs a key: tls_eab_key_file or #{Domains::EAB_KEY}" if key.to_s.empty?
        raise Failed, "the key of an external account needs tls_eab_kid" if @domains.eab_kid.to_s.empty?

        { kid: @domains.eab_kid, hmac_key: key }
      end

      # ---- proofs ----

      def prove(authorization)
        return if authorization.status == "valid"

        challenge = authorization.http or raise Failed, "the server offers no proof by port 80 (http-01)"
        @store.showing(challenge.token, challenge.key_authorization) do
          challenge.request_validation
          wait_while(challenge, %w[pending processing])
        end
        return if challenge.status == "valid"

        raise Failed, "the server did not find the token on port 80: #{words(challenge.error)}"
      end

      def keep(name, order)
        wait_while(order, %w[pending])
        raise Failed, "the order is #{order.status}: #{words(order.error)}" unless order.status == "ready"

        key = OpenSSL::PKey::EC.generate("prime256v1")
        order.finalize(csr: Acme::Client::CertificateRequest.new(names: [name], private_key: key))
        wait_while(order, %w[processing])
        raise Failed, "the order is #{order.status}: #{words(order.error)}" unless order.status == "valid"

        chain = order.certificate
        checked(name, chain, key).tap { @store.keep(name, chain, key.private_to_pem) }
      end

      # A server that is broken does not take the place of what works.
      def checked(name, chain, key)
        certificate = OpenSSL::X509::Certificate.new(chain)
        raise Failed, "the server sent a certificate of another key" unless certificate.check_private_key(key)
        return certificate if OpenSSL::SSL.verify_certificate_identity(certificate, name)

        raise Failed, "the server sent a certificate of another name"
      rescue OpenSSL::X509::CertificateError
        raise Failed, "the server sent no certificate"
      end

      # ---- waiting ----

      def wait_while(resource, states)
        delay = FIRST_WAIT
        resource.reload
        while states.include?(resource.status)
          seconds = Order.pause(resource.respond_to?(:retry_after) ? resource.retry_after : nil, delay)
          if now + seconds > @until
            raise Refused.new("the server did not decide within #{PATIENCE} s", retry_after: seconds)
          end

          sleep seconds
          delay = [delay * 2, LONGEST_WAIT].min
          resource.reload
        end
      end

      def now
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      # ---- errors ----

      def translate_errors
        yield
      rescue Failed
        raise
      rescue Acme::Client::Error::Timeout
        raise Unreachable, "#{URI(@domains.directory).host} does not answer"
      rescue Acme::Client::Error => e
        reason = "the server refuses: #{words("detail" => e.message)}"
        raise Refused.new(reason, retry_after: Order.seconds(e.retry_after))
      rescue Faraday::Error, SystemCallError, SocketError, OpenSSL::SSL::SSLError => e
        raise Unreachable, "#{URI(@domains.directory).host} cannot be reached: #{words("detail" => e.message)}"
      rescue StandardError => e # the gem believes that every answer has all parts
        reason = "#{words("detail" => e.message)} (#{e.class})"
        raise Refused, "#{URI(@domains.directory).host} does not speak ACME: #{reason}"
      end

      def words(problem)
        text = problem.is_a?(Hash) ? problem["detail"].to_s : problem.to_s
        text.empty? ? "no reason given" : text.lines.map(&:strip).join(" ").byteslice(0, LONGEST).scrub("?")
      end
    end
  end
end
