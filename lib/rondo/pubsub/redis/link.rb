# frozen_string_literal: true

# One connection to Redis: opened, greeted (AUTH, SELECT), then commands out and replies in, in order.
# Opening waits, by its deadline; everything after that never does. Belongs to the engine's thread
# (pump.rb), which waits for the socket and keeps the deadlines.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "openssl"
require "socket"
require "rondo/pubsub/redis/replies"

module Rondo
  module PubSub
    class Redis < Engine
      # A connection and the commands on it that have no reply yet.
      # @api private
      class Link
        # The connection cannot be opened, is closed, or is silent: a message of one line.
        class Broken < StandardError; end

        # Redis is there, but says no.
        class Refused < Broken; end

        # A command whose reply is still to come; its block gets the reply.
        Asked = Struct.new(:word, :begins_at, :block)

        # What is read in a turn at most; the rest waits for the next one.
        READS = 16
        READ_BYTES = 65_536

        # @return [IO] to wait for
        attr_reader :io
        # @return [Float] when it was opened, on the monotonic clock
        attr_reader :opened_at

        # @param config [RedisClient::Config]
        # @param timeout [Numeric] seconds to open it, and for each reply
        # @param ping [Numeric] seconds of silence after which it is pinged
        # @param reply_max [Integer] bytes
        # @param checks [Array<Array(Array<String>, #call)>] commands before it is ready; their replies
        # @yieldparam reply [Object] first of all; answers whether Redis said it unasked
        # @raise [Broken]
        def initialize(config, timeout:, ping:, reply_max:, checks: [], &on_push)
          @config = config
          @checks = checks
          @timeout = timeout
          @ping = ping
          @on_push = on_push
          @replies = Replies.new(reply_max)
          @out = String.new(encoding: Encoding::BINARY)
          @asked = []
          @sent = @queued = 0
          open
          @opened_at = @heard_at = now
          greet
        end

        # @return [Boolean] greeted: commands may follow
        def ready?
          @ready
        end

        # @return [Integer] commands without a reply
        def pending
          @asked.size
        end

        # @param words [Array<String>] one command
        # @yieldparam reply [String, Integer, Array, nil, Replies::Refusal]
        # @return [void]
        def ask(words, &block)
          ask_encoded(Link.encode(words), words.first, &block)
        end

        # @param bytes [String] from {Link.encode}
        # @param word [Object] handed back by {#unanswered}
        # @return [void]
        def ask_encoded(bytes, word = nil, &block)
          @heard_at = now if @asked.empty?
          @asked << Asked.new(word, @queued, block)
          @queued += bytes.bytesize
          @out << bytes
        end

        # @return [Array<Array(Object, Boolean)>] the words of commands without a reply, oldest first, and
        #   whether any of their bytes has been sent
        def unanswered
          @asked.map { |asked| [asked.word, asked.begins_at < @sent] }
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
          raise Broken, Link.reason(e)
        rescue Replies::Invalid => e
          raise Broken, "not the Redis protocol: #{e.message}"
        end

        # @return [Float] seconds until {#turn} has to look at the time
        def patience
          return [@opened_at + @timeout - now, 0].max unless @ready # whatever it says until then

          limit = @asked.empty? ? @ping : @timeout
          [@heard_at + limit - now, 0].max
        end

        # @return [void]
        def close
          @io.close # without the farewell of TLS: a forked process closes its parent's, too
        rescue SystemCallError, IOError
          nil
        end

        # @return [String] without what is sent
        def inspect
          "#<#{self.class} #{@config.server_url}>"
        end

        # @param words [Array<#to_s>]
        # @return [String] the command on the wire
        def self.encode(words)
          words.each_with_object("*#{words.size}\r\n".b) do |word, bytes|
            text = word.to_s.b
            bytes << "$#{text.bytesize}\r\n" << text << "\r\n"
          end
        end

        # @return [String] a refusal without the words it repeats: a Redis without AUTH repeats the password
        def self.without_words(message)
          message.partition(/,? with args/).first
        end

        # @return [String] what the system says, without what Ruby adds
        def self.reason(error)
          return SystemCallError.new(nil, error.errno).message if error.is_a?(SystemCallError)
          return "Redis closed the connection" if error.is_a?(EOFError)

          error.message.lines.first.to_s.chomp
        end

        private

        def now
          Process.clock_gettime(Process::CLOCK_MONOTONIC)
        end

        # ---- opening ----

        def open
          @io = @socket = open_socket
          secure if @config.ssl?
        rescue SystemCallError, IOError, SocketError, OpenSSL::OpenSSLError => e
          @io&.close
          raise Broken, Link.reason(e)
        end

        def open_socket
          return UNIXSocket.new(@config.path) if @config.path

          Socket.tcp(@config.host, @config.port, connect_timeout: @timeout).tap do |socket|
            socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
          end
        end

        def secure
          @socket = OpenSSL::SSL::SSLSocket.new(@io, @config.ssl_context)
          @socket.hostname = @config.host
          limit = now + @timeout
          while (wanted = @socket.connect_nonblock(exception: false)).is_a?(Symbol)
            left = limit - now
            ready = left.positive? && (wanted == :wait_readable ? @io.wait_readable(left) : @io.wait_writable(left))
            raise Errno::ETIMEDOUT unless ready
          end
        end

        # Only the answer to PING shows that the server works: a stopped process still accepts.
        def greet
          @config.connection_prelude.each { |words| expect(words) }
          @checks.each { |words, check| ask(words, &check) }
          expect(["PING"]) { @ready = true }
        end

        def expect(words)
          ask(words) do |reply|
            raise Refused, Link.without_words(reply.message) if reply.is_a?(Replies::Refusal)

            yield if block_given?
          end
        end

        # ---- turns ----

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
            @replies.feed(bytes) { |reply| dispatch(reply) }
          end
          @more = true
        end

        def dispatch(reply)
          return if @on_push&.call(reply)

          asked = @asked.shift or raise Broken, "a reply that belongs to no command"
          asked.block&.call(reply)
        end

        def check_time
          return if patience.positive?
          raise Broken, "no answer within #{@timeout} s" if @asked.any?

          ask(["PING"])
          send_some
        end
      end
    end
  end
end
