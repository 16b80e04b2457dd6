# frozen_string_literal: true

# Where fetched certificates are: for each name one file with the chain and its key, which is replaced as a whole; keys
# of accounts; how the last tries ended; and the folder of tokens, from which port 80 answers. Two servers may share it.
# SPDX-License-Identifier: MIT

require "digest"
require "json"
require "openssl"
require "rondo/certificates/folder"

module Rondo
  module Certificates
    # The files of a folder of fetched certificates.
    class Store
      TOKENS = "webroot/.well-known/acme-challenge"
      # When a certificate is renewed: a third of its life is left.
      LEFT = 3.0
      # Seconds after a failure, doubled with each of them.
      FIRST_DELAY = 60
      LONGEST_DELAY = 6 * 3600
      # Bytes that a certificate, with its chain and its key, may need.
      ROOM = 32_768
      KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----.*-----END [A-Z ]*PRIVATE KEY-----/m
      # A server that limits may ask for longer than that, but for no more than a week.
      LONGEST_WISH = 7 * 86_400

      # How a name is doing.
      # @!attribute certificate [OpenSSL::X509::Certificate, nil] with its key; nil: there is none that can be shown
      # @!attribute renew_at [Time, nil] of the certificate
      # @!attribute failures [Integer] in a row
      # @!attribute next_try [Time, nil] not before
      # @!attribute error [String, nil] of the last try
      State = Struct.new(:name, :certificate, :renew_at, :failures, :next_try, :error, keyword_init: true) do
        # @return [Boolean] whether it is there and valid
        def good?(now = Time.now)
          !certificate.nil? && certificate.not_before <= now && certificate.not_after > now
        end

        # @return [Time] when there is something to do
        def due_at
          [renew_at || Time.at(0), next_try || Time.at(0)].max
        end
      end

      # @param path [String]
      def initialize(path)
        @folder = Folder.new(path)
      end

      # @return [Folder]
      attr_reader :folder

      # @return [String] path of the folder that port 80 serves; it is made
      # @raise [Failed]
      def webroot
        @folder.make(@folder.at(TOKENS))
        @folder.at("webroot")
      end

      # @param name [String] of a host
      # @return [String] path of its file, which may not exist
      def path(name)
        @folder.at(file(name))
      end

      # @param name [String]
      # @param chain [String] PEM
      # @param key [String] PEM
      # @return [void]
      # @raise [Failed]
      def keep(name, chain, key)
        @folder.write(file(name), "#{chain.chomp}\n#{key}")
      end

      # @param name [String]
      # @return [State]
      def state(name)
        certificate = certificate(name)
        tries = tries(name)
        lifetime = certificate && (certificate.not_after - certificate.not_before)
        renew_at = certificate && (certificate.not_after - (lifetime / LEFT))
        State.new(name: name, certificate: certificate, renew_at: renew_at, **tries)
      end

      # Whoever orders what cannot be kept uses up what the server allows for a week.
      # @return [void]
      # @raise [Failed] there is no room for another certificate
      def check_room
        @folder.write("room", "\0" * ROOM)
        @folder.remove("room")
      end

      # @param name [String]
      # @param error [String] one line
      # @param wish [Numeric, nil] seconds that the server asked for
      # @return [Integer] seconds until the next try
      def failed(name, error, wish = nil)
        failures = tries(name)[:failures]
        delay = [FIRST_DELAY * (2**[failures, 16].min), LONGEST_DELAY].min * (0.8 + (rand * 0.4))
        delay = [delay, wish.to_f.clamp(0, LONGEST_WISH)].max.ceil
        remember(name, failures: failures + 1, next: Time.now.to_i + delay, delay: delay, error: error)
        delay
      end

      # @param name [String]
      # @return [void]
      def succeeded(name)
        @folder.remove(tries_file(name))
      end

      # @param directory [String] URL; each has an account of its own
      # @return [OpenSSL::PKey::EC] made and kept at first
      # @raise [Failed]
      def account_key(directory)
        file = "accounts/#{Digest::SHA256.hexdigest(directory)[0, 16]}.pem"
        pem = @folder.read(file)
        return OpenSSL::PKey.read(pem, "") if pem

        OpenSSL::PKey::EC.generate("prime256v1").tap { |key| @folder.write(file, key.private_to_pem) }
      rescue OpenSSL::PKey::PKeyError => e
        raise Failed, "cannot read #{@folder.at(file)}: #{e.message.lines.first.chomp}"
      end

      # Shows a token while the block runs.
      # @param token [String] of base64url
      # @param answer [String]
      # @yield
      def showing(token, answer)
        raise Failed, "the server named a token that is none" unless token.match?(/\A[\w-]{1,128}\z/)

        @folder.write("#{TOKENS}/#{token}", answer, mode: 0o644)
        yield
      ensure
        @folder.remove("#{TOKENS}/#{token}") if token.match?(/\A[\w-]{1,128}\z/)
      end

      private

      def file(name)
        "live/#{name}.pem"
      end

      def tries_file(name)
        "tries/#{name}.json"
      end

      # What cannot be read, or has no key, is replaced like one that has expired.
      def certificate(name)
        pem = @folder.read(file(name)) or return
        found = OpenSSL::X509::Certificate.new(pem)
        found if found.check_private_key(OpenSSL::PKey.read(pem[KEY].to_s, ""))
      rescue Failed, OpenSSL::OpenSSLError
        nil
      end

      # What is damaged is as if there had been no try.
      def tries(name)
        found = JSON.parse(@folder.read(tries_file(name)) || "{}")
        found = found.is_a?(Hash) ? { "delay" => LONGEST_WISH, **found } : {}
        failures, at, delay = found.values_at("failures", "next", "delay").map { |one| one.is_a?(Integer) ? one : 0 }
        { failures: failures.clamp(0, 1000), error: found["error"]&.to_s, next_try: next_try(at, delay) }
      rescue Failed, JSON::ParserError
        { failures: 0, error: nil, next_try: nil }
      end

      # A moment that is further away than the delay is from a clock that was wrong then, or is wrong now.
      def next_try(seconds, delay)
        Time.at(seconds) if seconds.positive? && seconds - Time.now.to_i <= delay
      end

      def remember(name, **fields)
        @folder.write(tries_file(name), JSON.generate(fields))
      end
    end
  end
end
