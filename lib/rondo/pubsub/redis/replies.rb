# frozen_string_literal: true

# What Redis answers (RESP, version 2), out of any cut of its bytes: Strings, Integers, Arrays, nil
# and errors. Redis may belong to another party: a reply is limited in bytes, depth and elements before
# memory is taken for it. Used by link.rb.
# SPDX-License-Identifier: MIT

require "rondo/pubsub/engine"

module Rondo
  module PubSub
    class Redis < Engine
      # Puts replies together.
      # @api private
      class Replies
        # These bytes are not a reply, or one above the limits.
        class Invalid < StandardError; end

        # An answer to one command that says why not.
        class Refusal < StandardError
          # Another connection is needed, maybe to another node.
          ELSEWHERE = "LOADING|READONLY|CLUSTERDOWN|MASTERDOWN"
          # Redis is the right one, and does not do it now.
          FOR_NOW = "MISCONF|OOM|BUSY|TRYAGAIN|NOREPLICAS"
          PASSES = /\A(?:#{ELSEWHERE}|#{FOR_NOW}|MOVED|ASK)\b/

          # @return [Boolean] whether Redis, or another node, will take the command later. It was not executed.
          def passes?
            PASSES.match?(message)
          end
        end

        DEPTH = 8
        # Of the lines between which everything else stands.
        LINE_MAX = 65_536
        # No element is shorter.
        ELEMENT_MIN = 4
        NUMBER = /\A-?\d{1,19}\z/

        # @param limit [Integer] bytes of a reply
        def initialize(limit)
          @limit = limit
          @buffer = String.new(encoding: Encoding::BINARY)
          @at = @searched = 0
          @open = []
          @spent = 0
        end

        # @param bytes [String]
        # @yieldparam reply [String, Integer, Array, nil, Refusal]
        # @return [void]
        # @raise [Invalid] nothing that comes after has a meaning
        def feed(bytes)
          @buffer << bytes
          while (value = next_value) != :more
            value = close_arrays(value)
            next if value == :more

            @spent = 0
            yield value
          end
          @buffer.slice!(0, @at)
          @searched -= @at
          @at = 0
        end

        private

        # A value, or :more when its bytes, or the elements of an array, are still to come.
        def next_value
          return read_blob if @blob

          line = next_line or return :more
          rest = line.byteslice(1..)
          case line.getbyte(0)
          when 0x24 then begin_blob(rest)  # $
          when 0x2a then begin_array(rest) # *
          when 0x3a then number(rest)      # :
          when 0x2b then text(rest)        # +
          when 0x2d then refusal(rest) # -
          else raise Invalid, "no type of reply begins with this byte"
          end
        end

        def next_line
          stop = @buffer.index("\r\n", [@at, @searched].max)
          length = (stop || @buffer.bytesize) - @at
          raise Invalid, "a line of more than #{LINE_MAX} bytes" if length > LINE_MAX
          return remember_search unless stop

          line = @buffer.byteslice(@at, length)
          spend(length + 2)
          @at = @searched = stop + 2
          line
        end

        # The last byte may be the CR of what comes.
        def remember_search
          @searched = [@buffer.bytesize - 1, @at].max
          nil
        end

        def begin_blob(text)
          length = number(text)
          return if length == -1
          raise Invalid, "a length below zero" if length.negative?

          spend(length + 2)
          @blob = length
          read_blob
        end

        def read_blob
          return :more if @buffer.bytesize - @at < @blob + 2
          raise Invalid, "a string does not end where it should" unless @buffer.byteslice(@at + @blob, 2) == "\r\n"

          value = text(@buffer.byteslice(@at, @blob))
          @at = @searched = @at + @blob + 2
          @blob = nil
          value
        end

        def begin_array(text)
          count = number(text)
          return if count == -1
          raise Invalid, "a length below zero" if count.negative?
          raise Invalid, "more than #{DEPTH} arrays inside each other" if @open.size >= DEPTH
          raise Invalid, "a reply of more than #{@limit} bytes" if @spent + (count * ELEMENT_MIN) > @limit
          return [] if count.zero?

          @open << [[], count]
          next_value
        end

        # Adds a value to the array that waits for it, and that to its own when it is full.
        def close_arrays(value)
          while (array, count = @open.last)
            array << value
            return :more if array.size < count

            value = @open.pop.first
          end
          value
        end

        def number(text)
          raise Invalid, "not a number" unless text.match?(NUMBER)

          text.to_i
        end

        # Redis does not say what is text.
        def text(bytes)
          bytes.force_encoding(Encoding::UTF_8)
          bytes.valid_encoding? ? bytes : bytes.force_encoding(Encoding::BINARY)
        end

        # For a log: one line, without control characters.
        def refusal(bytes)
          Refusal.new(bytes.force_encoding(Encoding::UTF_8).scrub.tr("\u0000-\u001f\u007f-\u009f", " "))
        end

        def spend(bytes)
          @spent += bytes
          raise Invalid, "a reply of more than #{@limit} bytes" if @spent > @limit
        end
      end
    end
  end
end
