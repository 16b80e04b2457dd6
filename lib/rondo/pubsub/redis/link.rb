# frozen_string_literal: true

# One connection to Redis: opened, greeted (AUTH, SELECT), then commands out and replies in, in order.
# Opening waits, by its deadline; everything after that never does. Belongs to the engine's thread
# (pump.rb), which waits for the socket and keeps the deadlines.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"
require "rondo/pubsub/queued/link"
require "rondo/pubsub/redis/replies"

module Rondo
  module PubSub
    class Redis < Engine
      # A connection and the commands on it that have no reply yet.
      # @api private
      class Link < Queued::Link
        # A command whose reply is still to come; its block gets the reply.
        Asked = Struct.new(:word, :begins_at, :block)

        PEER = "Redis"
        # It does not take who we are, or has no such database.
        DENIED = /\A(?:(?:WRONGPASS|NOAUTH|NOPERM|DENIED)\ |
                      ERR\ (?:invalid\ password|Client\ sent\ AUTH|AUTH\ <password>|(?:invalid\ )?DB\ index))/ix

        # @param config [RedisClient::Config]
        # @param timeout [Numeric] seconds to open it, and for each reply
        # @param ping [Numeric] seconds of silence after which it is pinged
        # @param reply_max [Integer] bytes
        # @param checks [Array<Array(Array<String>, #call)>] commands before it is ready; their replies
        # @yieldparam reply [Object] first of all; answers whether Redis said it unasked
        # @raise [Broken]
        def initialize(config, timeout:, ping:, reply_max:, checks: [], &on_push)
          super(timeout, ping)
          @config = config
          @checks = checks
          @on_push = on_push
          @replies = Replies.new(reply_max)
          @asked = []
          @queued = 0
          open
          @opened_at = @heard_at = now
          greet
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

        # A command that is asked when the connection is ready, and again with each ping, or as often while it is not
        # silent.
        # @param words [Array<String>]
        # @yieldparam reply [Object]
        # @yieldreturn [Boolean] whether to ask again
        # @return [void]
        def ask_again(words, &block)
          @again = [words, block]
          @again_at = now
        end

        # @return [Array<Array(Object, Boolean)>] the words of commands without a reply, oldest first, and
        #   whether any of their bytes has been sent
        def unanswered
          @asked.map { |asked| [asked.word, asked.begins_at < @sent] }
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

        # @param reply [Object]
        # @param before [String] goes before what a refusal says
        # @return [void]
        # @raise [Refused] if it is one
        def self.check(reply, before = "")
          return unless reply.is_a?(Replies::Refusal)

          kind = DENIED.match?(reply.message) ? Denied : Refused
          raise kind, "#{before}#{without_words(reply.message)}"
        end

        private

        def place
          @config.path || "#{@config.host}:#{@config.port}"
        end

        # ---- opening ----

        def open
          @io = @socket = open_socket
          secure(@config.ssl_context, @config.host, now + @timeout) if @config.ssl?
        rescue SystemCallError, IOError, SocketError, OpenSSL::OpenSSLError => e
          @io&.close
          raise Broken, reason(e)
        end

        def open_socket
          return UNIXSocket.new(@config.path) if @config.path

          connect(@config.host, @config.port)
        end

        # Only the answer to PING shows that the server works: a stopped process still accepts.
        def greet
          @config.connection_prelude.each { |words| expect(words) }
          @checks.each { |words, check| ask(words, &check) }
          expect(["PING"]) { @ready = true }
        end

        def expect(words)
          ask(words) do |reply|
            Link.check(reply)

            yield if block_given?
          end
        end

        # ---- turns ----

        def feed(bytes)
          @replies.feed(bytes) { |reply| dispatch(reply) }
        rescue Replies::Invalid => e
          raise Broken, "not the Redis protocol: #{e.message}"
        end

        def dispatch(reply)
          return if @on_push&.call(reply)

          asked = @asked.shift or raise Broken, "a reply that belongs to no command"
          asked.block&.call(reply)
        end

        def owed?
          @asked.any?
        end

        def ask_for_sign
          ask(["PING"])
        end

        def check_time
          super
          return unless @again && @ready && now >= @again_at

          words, block = @again
          @again_at = now + @ping
          ask(words) { |reply| @again = nil unless block.call(reply) }
          send_some
        end
      end
    end
  end
end
