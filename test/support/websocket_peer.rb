# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# A WebSocket client that waits for what it expects. websocket_frames.rb has the format of frames.

require_relative "raw_client"
require_relative "websocket_frames"

class WebsocketPeer
  F = WebsocketFrames
  HANDSHAKE = "GET /%s HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" \
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n"

  attr_reader :head

  # @param lines [String] more header lines
  # @param extensions [String, nil] what it offers
  # @param fields [Hash{String => String}] further fields; a Host replaces the usual one
  # @param receive_buffer [Integer, nil] bytes; a small one makes a slow reader visible early
  def initialize(url, path = "", lines = "", extensions: nil, fields: {}, receive_buffer: nil)
    @raw = RawClient.new(url, receive_buffer: receive_buffer)
    @raw.write(handshake(path, lines, { "Sec-WebSocket-Extensions" => extensions, **fields }.compact))
    @buffer = +"".b
    @buffer << @raw.read_some until @buffer.include?("\r\n\r\n")
    @head, @buffer = @buffer.split("\r\n\r\n", 2)
    @frames = []
  end

  def say(text)
    @raw.write(F.frame(F::TEXT, text))
    self
  end

  def send_bytes(bytes)
    @raw.write(bytes)
    self
  end

  # Answers pings, which come when a test takes long.
  # @return [String] payload of the next message
  def hear
    frame = next_frame or raise "closed"
    raise "frame #{frame}" if frame.opcode == F::CLOSE
    return frame.payload unless frame.opcode == F::PING

    send_bytes(F.frame(F::PONG, frame.payload)).hear
  end

  # @return [Array(Integer, String), nil] code and reason of the Close; nil: the connection ended without one
  def hear_close
    frame = next_frame or return
    raise "frame #{frame}" unless frame.opcode == F::CLOSE

    [frame.payload.unpack1("n"), frame.payload.byteslice(2..)]
  end

  def ask(text)
    say(text).hear
  end

  # @return [Boolean] whether there is something to hear within that time
  def wait_readable(seconds)
    !@frames.empty? || !@buffer.empty? || !!@raw.socket.wait_readable(seconds)
  end

  def next_frame
    while @frames.empty?
      @frames.concat(F.take(@buffer))
      break unless @frames.empty?

      more = @raw.read_some or return
      @buffer << more
    end
    @frames.shift
  end

  def half_close
    @raw.half_close
    self
  end

  def reset
    @raw.reset
  end

  def close
    @raw.close
  end

  private

  def handshake(path, lines, fields)
    more = fields.except("Host").map { |name, value| "#{name}: #{value}\r\n" }.join
    format(HANDSHAKE, path, lines + more).sub("Host: a", "Host: #{fields.fetch("Host", "a")}")
  end
end
