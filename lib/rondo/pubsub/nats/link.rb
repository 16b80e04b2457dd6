# frozen_string_literal: true

# One connection to a NATS: opened, greeted, then operations out and messages in, in order. Opening waits, by its
# deadline; everything after that never does. Belongs to the engine's thread (pump.rb), which waits for the socket.
# SPDX-License-Identifier: MIT

require "json"
require "uri"
require "rondo/version"
require "rondo/pubsub/queued/link"
require "rondo/pubsub/nats/credentials"
require "rondo/pubsub/nats/wire"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      class Link < Queued::Link
        PEER = "NATS"
        # What NATS says of one subject; the connection stays.
        STAYS = /permissions violation/i
        # It does not take who we are.
        DENIED = /\A(?:authorization violation|(?:user |account )?authentication (?:expired|revoked))/i
        # Characters of what it says that are shown.
        SHOWN = 300
        # Bytes that wait to be sent. Above that nothing is read: whoever only asks must read answers, too.
        UNSENT_MAX = 4 << 20
        # Times the timeout that a PONG may take while other things come.
        PATIENCE = 12

        # @return [Hash{String => Object}] what the server says of itself
        attr_reader :info

        # @param url [URI]
        # @param access [Credentials]
        # @param tls [Hash, nil] of SSLContext#set_params, with cert and key as paths
        # @param timeout [Numeric] seconds to open it, and for each answer
        # @param ping [Numeric] seconds of silence after which it is pinged
        # @param bytes_max [Integer] of a message
        # @yieldparam message [Message]
        # @raise [Broken]
        def initialize(url, access, tls:, timeout:, ping:, bytes_max:, on_refusal:, &on_message)
          super(timeout, ping)
          @url = url
          @access = access
          @tls = tls
          @on_refusal = on_refusal
          @on_message = on_message
          @wire = Wire.new(bytes_max)
          @pongs = []
          open
        end

        # @param bytes [String] operations
        # @return [void]
        def push(bytes)
          @out << bytes
        end

        # Everything before is known to the server when the block is called.
        # @return [void]
        def ping(&block)
          @heard_at = now if @pongs.empty?
          @pongs << [now, block]
          push("PING\r\n")
        end

        # @return [Boolean] whether what comes is taken
        def reads?
          unsent_bytes <= UNSENT_MAX
        end

        # @return [Float] seconds until {#turn} has to look at the time
        def patience
          asked_at, = @pongs.first
          [super, asked_at && [asked_at + (PATIENCE * @timeout) - now, 0].max].compact.min
        end

        # @param text [String] of the server
        # @return [String] for a log
        def self.line(text)
          text.dup.force_encoding(Encoding::UTF_8).scrub[0, SHOWN].tr("\u0000-\u001f\u007f-\u009f", " ").strip
        end

        private

        def place
          "#{@url.hostname}:#{@url.port}"
        end

        # ---- opening ----

        def open
          @io = @socket = connect(@url.hostname, @url.port || DEFAULT_PORT)
          @info = read_info
          secure(context, @url.hostname, @opened_at + @timeout) if @url.scheme == "tls" || @tls || @info["tls_required"]
          greet
        rescue SystemCallError, IOError, SocketError, OpenSSL::OpenSSLError => e
          close if @io
          raise Broken, reason(e)
        rescue Credentials::Invalid => e
          close
          raise Denied, e.message
        rescue Broken
          close
          raise
        end

        # Byte by byte: what follows the line may be of TLS.
        def read_info
          line = +""
          until line.end_with?("\r\n")
            left = @opened_at + @timeout - now
            raise Broken, "no answer within #{@timeout} s" unless left.positive? && @io.wait_readable(left)

            byte = @io.read_nonblock(1, exception: false)
            raise EOFError if byte.nil?

            line << byte if byte.is_a?(String)
            raise Broken, "not the NATS protocol" if line.bytesize > Wire::LINE_MAX || !"INFO ".start_with?(line[0, 5])
          end
          info = JSON.parse(line.delete_prefix("INFO "))
          info.is_a?(Hash) ? info : raise(Broken, "not the NATS protocol")
        rescue JSON::ParserError, EncodingError
          raise Broken, "not the NATS protocol"
        end

        def context
          words = @tls.is_a?(Hash) ? @tls.dup : {}
          cert, key = words.values_at(:cert, :key)
          words[:cert] = OpenSSL::X509::Certificate.new(File.read(cert)) if cert
          words[:key] = OpenSSL::PKey.read(File.read(key)) if key
          OpenSSL::SSL::SSLContext.new.tap { |context| context.set_params(words) }
        end

        # Only the answer to PING shows that the server takes us.
        def greet
          words = { verbose: false, pedantic: false, lang: "ruby", version: VERSION, name: "rondo", protocol: 1,
                    headers: true, no_responders: true, echo: true, tls_required: !@socket.equal?(@io) }
          push("CONNECT #{JSON.generate(words.merge(@access.fields(@url, @info["nonce"])))}\r\n")
          ping { @ready = true }
        end

        # ---- turns ----

        def read_some
          super if reads?
        end

        def feed(bytes)
          @wire.feed(bytes) { |word, value| dispatch(word, value) }
        rescue Wire::Invalid => e
          raise Broken, "not the NATS protocol: #{e.message}"
        end

        def dispatch(word, value)
          case word
          when :msg then @on_message.call(value)
          when :ping then push("PONG\r\n")
          when :pong then @pongs.shift&.last&.call
          when :err
            said = Link.line(value)
            return @on_refusal.call(said) if STAYS.match?(said)

            raise (DENIED.match?(said) ? Denied : Refused), said
          end
        end

        def owed?
          @pongs.any?
        end

        def ask_for_sign
          ping { nil }
        end
      end
    end
  end
end
