# frozen_string_literal: true

# A connection to the server of an engine. Opening waits, by its deadline; everything after that never does. Belongs to
# the engine's thread (pump.rb), which waits for the socket and keeps the deadlines. Who inherits from it opens @io and
# @socket, and has PEER, `place`, `feed`, `owed?` and `ask_for_sign`.
# SPDX-License-Identifier: MIT

require "openssl"
require "socket"
require "rondo/pubsub/queued/engine"
require "rondo/pubsub/queued/lookup"

module Rondo
  module PubSub
    module Queued
      # Bytes out and in, and the time.
      # @api private
      class Link
        # The connection cannot be opened, is closed, or is silent: a message of one line.
        class Broken < StandardError; end

        # The server is there, but says no.
        class Refused < Broken; end

        # It would say the same the next time: a password is wrong, or a file of credentials is none.
        class Denied < Refused; end

        # What is read in a turn at most; the rest waits for the next one.
        READS = 16
        READ_BYTES = 65_536

        # @return [IO] to wait for
        attr_reader :io

        # @return [Boolean] greeted: what is asked may follow
        def ready?
          @ready
        end

        # @return [Integer] bytes that wait to be sent
        def unsent_bytes
          @out.bytesize
        end

        # @return [Boolean] whether there is something to read that the socket does not show
        def more?
          @more
        end

        # Sends and reads what goes without waiting, then looks at the time.
        # @return [void]
        # @raise [Broken]
        def turn
          send_some
          read_some
          check_time
        rescue SystemCallError, IOError, OpenSSL::SSL::SSLError => e
          raise Broken, reason(e)
        end

        # @return [Float] seconds until {#turn} has to look at the time
        def patience
          return [@opened_at + @timeout - now, 0].max unless @ready # whatever it says until then

          [@heard_at + (owed? ? @timeout : @ping) - now, 0].max
        end

        # @return [String] without what is sent
        def inspect
          "#<#{self.class} #{place}>"
        end

        # @return [void]
        def close
          @io.close # without the farewell of TLS: a forked process closes its parent's, too
        rescue SystemCallError, IOError
          nil
        end

        private

        # @param timeout [Numeric] seconds to open it, and for each answer
        # @param ping [Numeric] seconds of silence after which a sign is asked for
        def initialize(timeout, ping)
          @timeout = timeout
          @ping = ping
          @out = String.new(encoding: Encoding::BINARY)
          @sent = 0
          @opened_at = @heard_at = now
        end

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # What the system says, without what Ruby adds.
        def reason(error)
          return SystemCallError.new(nil, error.errno).message if error.is_a?(SystemCallError)
          return "#{self.class::PEER} closed the connection" if error.is_a?(EOFError)

          error.message.lines.first.to_s.chomp
        end

        def connect(host, port)
          connect_to(Lookup.addresses(host, port, [@opened_at + @timeout - now, 0].max)).tap do |socket|
            socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          end
        end

        # The first one that is there.
        def connect_to(addresses)
          *others, last = addresses
          others.each do |address|
            return address.connect(timeout: @timeout)
          rescue SystemCallError
            next
          end
          last.connect(timeout: @timeout)
        end

        # @param limit [Float] when the server must have answered
        def secure(context, host, limit)
          @socket = OpenSSL::SSL::SSLSocket.new(@io, context)
          @socket.hostname = host
          while (wanted = @socket.connect_nonblock(exception: false)).is_a?(Symbol)
            left = limit - now
            ready = left.positive? && (wanted == :wait_readable ? @io.wait_readable(left) : @io.wait_writable(left))
            raise Errno::ETIMEDOUT unless ready
          end
        end

        def send_some
          until @out.empty?
            count = @socket.write_nonblock(@out, exception: false)
            return unless count.is_a?(Integer)

            @sent += count
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
            feed(bytes)
          end
          @more = true
        end

        def check_time
          return if patience.positive?
          raise Broken, "no answer within #{@timeout} s" if owed?

          ask_for_sign
          send_some
        end
      end
    end
  end
end
