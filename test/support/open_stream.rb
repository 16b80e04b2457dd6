# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A client of a stream of events that is still open, and the bytes that have come. event_stream.rb reads them.

require "socket"

class OpenStream
  attr_reader :head, :text

  # @param last [String, nil] the id of the last event that it saw
  def initialize(port, path, last: nil)
    @socket = TCPSocket.new("127.0.0.1", port)
    field = "Last-Event-ID: #{last}\r\n" if last
    @socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\nAccept: text/event-stream\r\n#{field}\r\n")
    @text = "".b
    @text << @socket.readpartial(65_536) until @text.include?("\r\n\r\n")
    @head, @text = @text.split("\r\n\r\n", 2)
  end

  # @return [Boolean] whether that has come, or comes within these seconds of silence
  def heard?(words, seconds = 0.2)
    words = words.b
    @text << @socket.readpartial(65_536) while !@text.include?(words) && @socket.wait_readable(seconds)
    @text.include?(words)
  end

  # @return [Boolean] whether that comes
  def hears?(words)
    heard?(words, 60)
  end

  # @return [Boolean] whether the server ends it, before these seconds of silence
  def ended?(seconds)
    @text << @socket.readpartial(65_536) while @socket.wait_readable(seconds)
    false
  rescue EOFError
    true
  end

  def close
    @socket.close
  end
end
