# frozen_string_literal: true

# Who this is for a NATS: a user, a token, a file of credentials, or an nkey. Files are read for each connection, so
# they may change. Used by link.rb.
# SPDX-License-Identifier: MIT

require "openssl"
require "rondo/pubsub/engine"
require "rondo/pubsub/queued/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      class Credentials
        # A file cannot be read, or has something else: a message of one line, without secrets.
        class Invalid < StandardError; end

        OPTIONS = %i[user password password_file token token_file creds nkey].freeze
        LETTERS = [*"A".."Z", *"2".."7"].join.freeze
        # What an Ed25519 key begins with in DER.
        DER = ["302e020100300506032b657004220420"].pack("H*").freeze
        # First byte of the name of a user.
        USER = 20 << 3
        SEED_BYTES = 36
        # Bytes of such a file.
        FILE_MAX = 65_536

        # @param options [Hash] those of {OPTIONS}; the last four are paths
        def initialize(options)
          @options = options
        end

        # @param url [URI] whose user counts where the options have none
        # @param nonce [String, nil] that the server wants to be signed
        # @return [Hash] of CONNECT
        # @raise [Invalid]
        def fields(url, nonce)
          return from_creds(nonce) if @options[:creds]
          return from_nkey(nonce) if @options[:nkey]

          token = @options[:token] || read(:token_file)
          return { auth_token: token } if token
          return of_user(url) if @options[:user] || url.user

          {}
        end

        # @return [String] without secrets
        def inspect
          "#<#{self.class} #{@options.keys.join(", ")}>"
        end

        private

        def of_user(url)
          password = @options[:password] || read(:password_file)
          return { user: @options[:user], pass: password.to_s } if @options[:user]

          name, secret = [url.user, url.password].map { |text| text && plain(text) }
          secret || password ? { user: name, pass: secret || password } : { auth_token: name }
        end

        # As addresses are written: a plus is a plus.
        def plain(text)
          text.b.gsub(/%(\h\h)/) { Regexp.last_match(1).hex.chr }.force_encoding(Encoding::UTF_8)
        end

        def read(name)
          path = @options[name] or return
          File.read(path, FILE_MAX).to_s.strip
        rescue SystemCallError => e
          raise Invalid, "cannot read #{path}: #{SystemCallError.new(nil, e.errno).message}"
        end

        def from_creds(nonce)
          text = read(:creds).to_s
          jwt = text[/BEGIN NATS USER JWT-+\s+(\S+)/, 1]
          key = key_of(text[/BEGIN USER NKEY SEED-+\s+(\S+)/, 1], :creds)
          raise Invalid, "#{@options[:creds]} has no credentials of NATS" unless jwt

          { jwt: jwt, sig: sign(key, nonce) }
        end

        def from_nkey(nonce)
          key = key_of(read(:nkey)[/^SU\S+/], :nkey)
          name = [USER].pack("C") << key.public_to_der.byteslice(-32, 32)
          { nkey: encode(name << [Queued.crc16(name)].pack("v")), sig: sign(key, nonce) }
        end

        def key_of(seed, option)
          bytes = decode(seed.to_s)
          sum = bytes.byteslice(34, 2)&.unpack1("v")
          unless bytes.bytesize == SEED_BYTES && Queued.crc16(bytes.byteslice(0, 34)) == sum
            raise Invalid, "#{@options[option]} has no seed of an nkey"
          end

          OpenSSL::PKey.read(DER + bytes.byteslice(2, 32))
        end

        def sign(key, nonce)
          [key.sign(nil, nonce.to_s)].pack("m0").tr("+/", "-_").delete("=")
        end

        def decode(text)
          bits = text.each_char.map { |letter| format("%05b", LETTERS.index(letter) || 0) }.join
          [bits[0, bits.size / 8 * 8]].pack("B*")
        end

        def encode(bytes)
          bytes.unpack1("B*").scan(/.{1,5}/).map { |five| LETTERS[five.ljust(5, "0").to_i(2)] }.join
        end
      end
    end
  end
end
