# frozen_string_literal: true

# Makes the frames of a WebSocket client, and parses those of a server (RFC 6455, section 5). It was written
# independently of the server's own codec, so that the two check each other.
# SPDX-License-Identifier: MIT

require "digest/sha1"

module WebsocketFrames
  CONTINUATION = 0
  TEXT = 1
  BINARY = 2
  CLOSE = 8
  PING = 9
  PONG = 10
  MASK = "\x37\xfa\x21\x3d".b
  GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  # A frame that a server sent.
  Frame = Struct.new(:opcode, :payload, :fin, :rsv)

  module_function

  # @param key [String] of a handshake
  # @return [String] what its answer has to have (RFC 6455, section 4.2.2)
  def accept_key(key)
    [Digest::SHA1.digest("#{key}#{GUID}")].pack("m0")
  end

  # @return [String] a masked frame
  def frame(opcode, payload = "", fin: true, rsv: 0, mask: MASK)
    bytes = payload.b
    head(opcode, bytes.bytesize, fin: fin, rsv: rsv, masked: mask) << mask.to_s << (mask ? masked(bytes, mask) : bytes)
  end

  # @return [String] the bytes before the mask
  def head(opcode, size, fin: true, rsv: 0, masked: true)
    [((fin ? 0x80 : 0) | (rsv << 4) | opcode), length_byte(size) | (masked ? 0x80 : 0)].pack("CC") << extended(size)
  end

  # @return [String] payload of a close
  def close_payload(code, reason = "")
    [code].pack("n") + reason.b
  end

  def close(code = 1000, reason = "")
    frame(CLOSE, close_payload(code, reason))
  end

  def masked(bytes, mask)
    keys = mask.bytes
    bytes.bytes.each_with_index.map { |byte, index| byte ^ keys[index % 4] }.pack("C*")
  end

  def length_byte(size)
    return size if size < 126

    size < 65_536 ? 126 : 127
  end

  def extended(size)
    return "" if size < 126

    size < 65_536 ? [size].pack("n") : [size].pack("Q>")
  end

  # Takes whole frames of a server from the front.
  # @return [Array<Frame>]
  def take(buffer)
    frames = []
    while (frame = take_one(buffer))
      frames << frame
    end
    frames
  end

  def take_one(buffer)
    return if buffer.bytesize < 2

    first, second = buffer.unpack("CC")
    raise "a masked frame of the server" if second.anybits?(0x80)

    size, at = { 126 => [buffer.byteslice(2, 2).unpack1("n"), 4],
                 127 => [buffer.byteslice(2, 8).unpack1("Q>"), 10] }.fetch(second, [second, 2])
    return if size.nil? || buffer.bytesize < at + size

    payload = buffer.slice!(0, at + size).byteslice(at, size)
    Frame.new(first & 15, payload, first.anybits?(0x80), (first >> 4) & 7)
  end
end
