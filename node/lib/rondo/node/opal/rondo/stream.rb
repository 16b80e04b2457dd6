# backtick_javascript: true
# frozen_string_literal: true

# What a body that has `call` writes to. It does not wait for the client: Node has no threads to wait with. What the
# client has not taken is counted by `pending`.
# SPDX-License-Identifier: MIT

module Rondo
  # The way to a client, with the methods that Rack asks for.
  class Stream
    # @param text [String]
    # @return [Integer] bytes
    # @raise [ClientGone] the client has left
    def write(*texts)
      texts.sum { |text| send_bytes(text.to_s) }
    end

    # @return [self]
    def <<(text)
      send_bytes(text.to_s)
      self
    end

    # @return [Integer] bytes that wait for the client
    def pending
      `self.response.pending()`
    end

    def flush
      self
    end

    # The request's body, as rack.input has it.
    def read(length = nil, buffer = nil)
      `self.input`.read(length, buffer)
    end

    def gets
      `self.input`.gets
    end

    def close(_error = nil)
      `self.response.finish()`
      nil
    end

    def close_read
      `self.input`.close
    end

    def close_write
      close
    end

    def closed?
      `self.response.isOver()`
    end

    def inspect
      "#<Rondo::Stream>"
    end

    private

    def send_bytes(text)
      raise IOError, "the stream is closed" if `self.response.isFinished()`
      raise ClientGone, "the client has left" if `self.response.isOver()`

      `self.response.write(text)`
    end
  end
end
