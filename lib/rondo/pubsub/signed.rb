# frozen_string_literal: true

# Names of channels that only this server can have written: a page that has one may subscribe, and cannot change it.
# They are those of Turbo's signed streams (ActiveSupport::MessageVerifier with SHA256 and JSON): each side reads what
# the other one signs with the same secret. docs/PUBLISHING.md is the manual.
# SPDX-License-Identifier: MIT

require "json"
require "openssl"
require "time"
require "rondo"

module Rondo
  # Signs names of channels, and verifies them. The secrets are those of the setting `signing_secret`, or of the
  # variable RONDO_SIGNING_SECRET.
  # @example
  #   name = Rondo::Signed.channel("room:1", expires_in: 3600) # goes into a page
  #   Rondo::Signed.verified(name)                             # => "room:1", or nil after an hour
  module Signed
    autoload :Subscriptions, "rondo/pubsub/outside/subscriptions"

    # Where the secrets are, if no setting has them: words, the first one signs.
    # @api private
    VARIABLE = "RONDO_SIGNING_SECRET"
    # Bytes of a secret, at least.
    # @api private
    SHORTEST = 16
    # Secrets that verify, at most.
    # @api private
    MOST = 16
    # Bytes of a signed name: a name has up to 1024, each of which may take six as JSON, and with its expiry it is
    # encoded twice.
    # @api private
    LONGEST = 16_384
    # Seconds of an expiry: 100 years.
    # @api private
    LONGEST_TIME = 3_155_760_000
    # @api private
    DIGEST = "SHA256"
    # @api private
    SHAPE = %r{\A([A-Za-z0-9+/_-]+={0,2})--([0-9a-f]{64})\z}
    private_constant :SHAPE

    class << self
      # @param secrets [String, Array<String>, nil] the first one signs, all of them verify; nil: those of the variable
      #   RONDO_SIGNING_SECRET
      # @return [void]
      # @raise [ArgumentError] one of them is shorter than 16 bytes, or there are more than 16
      def secrets=(secrets)
        @secrets = secrets && Signed.check(secrets)
      end

      # @return [Boolean] whether there is a secret
      def ready?
        !secrets.empty?
      end

      # @param name [String, Symbol] of a channel
      # @param expires_in [Numeric, nil] seconds for which it is valid; nil: for ever
      # @return [String] signed: Base64, two hyphens, and 64 hexadecimal digits
      # @raise [ArgumentError, TypeError] for a name or a time that is not valid
      # @raise [Error] there is no secret
      def channel(name, expires_in: nil)
        name, = PubSub.key_of(name, false, nil)
        raise ArgumentError, "the name of a channel must be UTF-8 to be signed" unless name.valid_encoding?
        raise Error, no_secret unless ready?

        data = strict(wrap(JSON.generate(name), expires_in))
        "#{data}--#{digest(secrets.first, data)}"
      end

      # @param text [String, nil] as {channel} returns it; what a client has sent
      # @return [String, nil] the name; nil: it is forged, has expired, or is none
      # @raise [Error] there is no secret
      def verified(text)
        verified_until(text)&.first
      end

      # @api private
      # @param text [String, nil] as for {verified}
      # @return [Array(String, Time), Array(String, nil), nil] the name, and when it expires
      # @raise [Error] there is no secret
      def verified_until(text)
        raise Error, no_secret unless ready?
        return unless text.is_a?(String) && text.bytesize <= LONGEST

        data, given = text.b.match(SHAPE)&.captures
        name_in(plain(data)) if data && signed?(data, given)
      end

      # @api private
      # @return [Integer] seconds of the clock by which names expire
      def second
        Time.now.to_i
      end

      # @api private
      # @param secrets [String, Array<String>]
      # @return [Array<String>]
      # @raise [ArgumentError] one line, without the secret
      def check(secrets)
        all = [*secrets]
        unless all.all?(String) && all.size.between?(1, MOST) && all.all? { |one| one.bytesize >= SHORTEST }
          raise ArgumentError, "must be 1 to #{MOST} Strings of #{SHORTEST} bytes or more"
        end

        all.map { |one| one.b.freeze }.freeze
      end

      # @api private
      # @return [String] why nothing can be signed
      def no_secret
        "there is no secret for signed names: set signing_secret in the configuration file, or #{VARIABLE}"
      end

      private

      def secrets
        @secrets || from_variable
      end

      def from_variable
        words = ENV[VARIABLE].to_s.split
        words.empty? ? [] : check(words)
      rescue ArgumentError => e
        raise Error, "#{VARIABLE} #{e.message}"
      end

      def digest(secret, data)
        OpenSSL::HMAC.hexdigest(DIGEST, secret, data)
      end

      def signed?(data, given)
        secrets.any? { |secret| OpenSSL.fixed_length_secure_compare(digest(secret, data), given) }
      end

      # The form that each version of MessageVerifier reads.
      def wrap(json, seconds)
        return json if seconds.nil?
        raise TypeError, "expires_in must be seconds, not #{seconds.class}" unless seconds.is_a?(Numeric)
        unless seconds.real? && (0.001..LONGEST_TIME).cover?(seconds)
          raise ArgumentError, "expires_in must be from 0.001 s to 100 years"
        end

        expiry = Time.at(Process.clock_gettime(Process::CLOCK_REALTIME, :float_second) + seconds).utc
        JSON.generate("_rails" => { "message" => strict(json), "exp" => expiry.iso8601(3), "pur" => nil })
      end

      def strict(text)
        [text].pack("m0")
      end

      # Base64, strict or for URLs, with or without padding.
      def plain(data)
        data = data.tr("-_", "+/").delete("=")
        data.ljust((data.bytesize + 3) / 4 * 4, "=").unpack1("m0").force_encoding(Encoding::UTF_8)
      rescue ArgumentError
        nil
      end

      # @return [Array(String, Time), Array(String, nil), nil]
      def name_in(text)
        given = parse(text)
        given, expiry = content(given["_rails"]) if given.is_a?(Hash)
        [given, expiry] if given.is_a?(String) && given.valid_encoding? && given.bytesize.between?(1, 1024)
      end

      # Of a message with an expiry, in both forms: as JSON in Base64, or as it is.
      def content(envelope)
        return unless envelope.is_a?(Hash) && envelope["pur"].to_s.empty?

        expiry = envelope["exp"] && Time.iso8601(envelope["exp"])
        return if expiry && Time.now >= expiry

        message = envelope["message"]
        name = message.is_a?(String) ? parse(plain(message)) : nil
        [message ? name : envelope["data"], expiry]
      rescue ArgumentError, TypeError, NoMethodError
        nil # the expiry is no time
      end

      def parse(text)
        JSON.parse(text, max_nesting: 3) if text&.valid_encoding?
      rescue JSON::ParserError
        nil
      end
    end
  end
end
