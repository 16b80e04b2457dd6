# backtick_javascript: true
# frozen_string_literal: true

# rack.input: the body of a request, which has come completely before the application is called. `@bytes` is a Buffer of
# Node. What is read becomes text if its bytes are UTF-8, and a BINARY String otherwise.
# SPDX-License-Identifier: MIT

module Rondo
  # Reads a Buffer.
  class Input
    # Opal's strings cannot be changed.
    NO_BUFFERS = "strings cannot be changed on Node: call read without a buffer"

    # @param length [Integer, nil] bytes
    # @return [String, nil] nil at the end, if a length was given
    # @raise [IOError] it is closed, or the request is over
    def read(length = nil, buffer = nil)
      raise NotImplementedError, NO_BUFFERS if buffer
      return take(rest) unless length
      raise ArgumentError, "negative length #{length} given" if length.negative?

      count = rest
      take([length, count].min) if count.positive? || length.zero?
    end

    # @return [String, nil] the next line with its end
    def gets
      count = rest
      return nil if count.zero?

      take(`(self.bytes.indexOf(10, self.position) + 1 || self.bytes.length) - self.position`)
    end

    # @yieldparam line [String]
    # @return [self, Enumerator]
    def each
      return enum_for(:each) unless block_given?

      while (line = gets)
        yield line
      end
      self
    end

    # @return [0]
    def rewind
      rest
      `self.position = 0`
    end

    # @return [Integer] bytes of the whole body
    def size
      rest
      `self.bytes.length`
    end

    # @return [Boolean]
    def eof?
      rest.zero?
    end

    def close
      `self.closed = true`
      nil
    end

    def closed?
      `self.closed`
    end

    def inspect
      "#<Rondo::Input>"
    end

    private

    def rest
      raise IOError, "the body of the request is closed" if `self.closed`

      `self.bytes.length - self.position`
    end

    def take(count)
      `Opal.rondo.text.fromBytes(self.bytes.subarray(self.position, self.position += count))`
    end
  end
end
