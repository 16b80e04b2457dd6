# frozen_string_literal: true

# The protocol of NATS: lines, and messages with headers. Only what an engine needs. Used by link.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Nats < Engine
      # A message that came; `sid` names the subscription.
      # @api private
      Message = Struct.new(:subject, :sid, :reply, :headers, :data) do
        # @return [Integer, nil] of those that the server makes itself
        def status
          headers[""]&.to_i
        end
      end

      # Takes operations out of a stream; makes them.
      # @api private
      class Wire
        # The stream has no meaning any more.
        class Invalid < StandardError; end

        # Bytes of a line; INFO names all servers of a cluster.
        LINE_MAX = 1 << 20
        # Bytes of the line before a message.
        HEAD_MAX = 16_384
        # Bytes of headers that are looked at.
        HEADERS_MAX = 16_384
        HEADER = "NATS/1.0"

        # @param bytes_max [Integer] of a message with its headers
        def initialize(bytes_max)
          @bytes_max = bytes_max
          @kept = String.new(encoding: Encoding::BINARY)
        end

        # @param bytes [String] any cut of the stream
        # @yieldparam word [Symbol] :msg, :info, :ping, :pong or :err
        # @yieldparam value [Message, String, nil]
        # @return [void]
        # @raise [Invalid]
        def feed(bytes, &)
          @kept << bytes
          @at = 0
          nil while take_one(&)
          @kept = @kept.byteslice(@at..) if @at.positive?
        end

        # @param subject [String]
        # @param data [String]
        # @param reply [String, nil] where an answer goes
        # @param headers [Hash{String => Object}]
        # @return [String] the operation
        def self.publish(subject, data, reply: nil, headers: {})
          place = reply ? "#{subject} #{reply}" : subject
          return "PUB #{place} #{data.bytesize}\r\n".b << data.b << "\r\n" if headers.empty?

          head = headers.reduce("#{HEADER}\r\n".b) { |text, (name, value)| text << "#{name}: #{value}\r\n" } << "\r\n"
          "HPUB #{place} #{head.bytesize} #{head.bytesize + data.bytesize}\r\n".b << head << data.b << "\r\n"
        end

        private

        def take_one
          limit = @kept.index("\r\n", @at)
          return check_line if limit.nil?

          line = @kept.byteslice(@at, limit - @at)
          word, rest = line.split(" ", 2)
          case word&.upcase
          when "MSG", "HMSG"
            return take_message(word.upcase == "HMSG", rest.to_s.split, limit + 2) { |message| yield :msg, message }
          when "INFO", "PING", "PONG" then yield word.downcase.to_sym, rest
          when "-ERR" then yield :err, rest.to_s.delete("'")
          when "+OK" then nil
          else raise Invalid, "a line that begins with #{word.to_s[0, 16].inspect}"
          end
          @at = limit + 2
        end

        def check_line
          raise Invalid, "a line above #{LINE_MAX} bytes" if @kept.bytesize - @at > LINE_MAX
        end

        def take_message(has_head, words, start)
          raise Invalid, "a message without sense" if start - @at > HEAD_MAX

          sizes = words.pop(has_head ? 2 : 1).map { |word| Integer(word, 10) }
          head, total = has_head ? sizes : [0, *sizes]
          unless total && words.size.between?(2, 3) && head.between?(0, total) && total <= @bytes_max
            raise Invalid, "a message without sense"
          end
          return false if @kept.bytesize < start + total + 2

          headers = has_head ? headers_of(@kept.byteslice(start, [head, HEADERS_MAX].min)) : {}
          yield Message.new(words[0], words[1], words[2], headers, @kept.byteslice(start + head, total - head))
          @at = start + total + 2
        rescue ArgumentError
          raise Invalid, "a message without a size"
        end

        # The first line may have a status behind the version.
        def headers_of(bytes)
          first, *lines = bytes.split("\r\n")
          status = first.to_s.delete_prefix(HEADER).strip
          lines.each_with_object(status.empty? ? {} : { "" => status }) do |line, found|
            name, value = line.split(":", 2)
            found[name] = value.strip if value
          end
        end
      end
    end
  end
end
