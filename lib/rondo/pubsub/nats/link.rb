# frozen_string_literal: true

# One connection to a NATS: opened, greeted, then operations out and messages in, in order. Opening waits, by its
# deadline; everything after that never does. Belongs to the engine's thread (pump.rb), which waits for the socket.
# SPDX-License-Identifier: MIT

require "json"
require "openssl"
require "socket"
require "uri"
require "rondo/version"
require "rondo/pubsub/nats/credentials"
require "rondo/pubsub/nats/wire"

module Rondo
  module PubSub
    class Nats < Engine
      # @api private
      class Link
        # The connection cannot be opened, is closed, or is silent: a message of one line.
        class Broken < StandardError; end

        # NATS is there, but says no.
        class Refused < Broken; end

        READS = 16
        READ_BYTES = 65_536
        # What NATS says of one subject; the connection stays.
        STAYS = /permissions violation/i

        # @return [IO] to wait for
        attr_reader :io
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
          @url = url
          @access = access
          @tls = tls
          @timeout = timeout
          @ping = ping
          @on_refusal = on_refusal
          @on_message = on_message
          @wire = Wire.new(bytes_max)
          @out = String.new(encoding: Encoding::BINARY)
          @pongs = []
          @opened_at = @heard_at = now
          open
        end

        # @return [Boolean] greeted: operations may follow
        def ready?
          @ready
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
          @pongs << block
          push("PING\r\n")
        end

        # @return [Integer] bytes that wait to be sent
        def unsent_bytes
          @out.bytesize
        end

        # @return [Boolean] whether there is something to read that the socket does not show
        def more?
          @more
        end

        # @return [void]
        # @raise [Broken]
        def turn
          send_some
          read_some
          check_time
        rescue SystemCallError, IOError, OpenSSL::SSL::SSLError => e
          raise Broken, Link.reason(e)
        rescue Wire::Invalid => e
          raise Broken, "not the NATS protocol: #{e.message}"
        end

        # @return [Float] seconds until {#turn} has to look at the time
        def patience
          return [@opened_at + @timeout - now, 0].max unless @ready

          [@heard_at + (@pongs.empty? ? @ping : @timeout) - now, 0].max
        end

        # @return [void]
        def close
          @io.close # without the farewell of TLS: a forked process closes its parent's, too
        rescue SystemCallError, IOError
          nil
        end

        # @return [String] what the system says, without what Ruby adds
        def self.reason(error)
          return SystemCallError.new(nil, error.errno).message if error.is_a?(SystemCallError)
          return "NATS closed the connection" if error.is_a?(EOFError)

          error.message.lines.first.to_s.chomp
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # ---- opening ----

        def open
          @io = @socket = Socket.tcp(@url.hostname, @url.port || DEFAULT_PORT, connect_timeout: @timeout)
          @io.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          @info = read_info
          secure if @url.scheme == "tls" || @tls || @info["tls_required"]
          greet
        rescue SystemCallError, IOError, SocketError, OpenSSL::OpenSSLError => e
          close if @io
          raise Broken, Link.reason(e)
        rescue Credentials::Invalid => e
          close
          raise Refused, e.message
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
          JSON.parse(line.delete_prefix("INFO "))
        rescue JSON::ParserError
          raise Broken, "not the NATS protocol"
        end

        def secure
          @socket = OpenSSL::SSL::SSLSocket.new(@io, context)
          @socket.hostname = @url.hostname
          while (wanted = @socket.connect_nonblock(exception: false)).is_a?(Symbol)
            left = @opened_at + @timeout - now
            ready = left.positive? && (wanted == :wait_readable ? @io.wait_readable(left) : @io.wait_writable(left))
            raise Errno::ETIMEDOUT unless ready
          end
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

        def send_some
          until @out.empty?
            count = @socket.write_nonblock(@out, exception: false)
            return unless count.is_a?(Integer)

            @out = @out.byteslice(count..)
          end
        end

        def read_some
          @more = false
          READS.times do
            bytes = @socket.read_nonblock(READ_BYTES, exception: false)
            raise EOFError if bytes.nil?
            return if bytes.is_a?(Symbol)

            @heard_at = now
            @wire.feed(bytes) { |word, value| dispatch(word, value) }
          end
          @more = true
        end

        def dispatch(word, value)
          case word
          when :msg then @on_message.call(value)
          when :ping then push("PONG\r\n")
          when :pong then @pongs.shift&.call
          when :err
            return @on_refusal.call(value) if STAYS.match?(value)

            raise Refused, value
          end
        end

        def check_time
          return if patience.positive?
          raise Broken, "no answer within #{@timeout} s" if @pongs.any?

          ping { nil }
          send_some
        end
      end
    end
  end
end
