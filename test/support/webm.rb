# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Films without an encoder: a lossy WebP picture is a key frame of VP8, and a WebM file is frames in EBML elements (RFC
# 8794, RFC 9559). Every second is a cluster with one frame. All clusters are in the index, so a player can seek
# anywhere at once.

module Webm
  SECOND = 1000 # ticks, of a million nanoseconds each

  class << self
    # @param webp [String] a picture as canvas.toBlob("image/webp") makes it
    # @param width [Integer] of it
    # @param height [Integer] of it
    # @param seconds [Integer] of the film
    # @return [String] the bytes of the file
    def film(webp, width:, height:, seconds:)
      frame = key_frame(webp)
      start = head(width, height, seconds)
      clusters = Array.new(seconds) { |second| cluster(second, frame) }
      from = start.bytesize + index([0] * seconds).bytesize
      offsets = clusters.each_index.map { |second| from + (second * clusters[0].bytesize) }
      element(0x1A45DFA3, text(0x4282, "webm"), number(0x4287, 2), number(0x4285, 2)) +
        element(0x18538067, start, index(offsets), *clusters)
    end

    private

    # The chunk "VP8 " of the RIFF file.
    def key_frame(webp)
      at = 12
      until webp.byteslice(at, 4) == "VP8 "
        raise ArgumentError, "no lossy WebP" if at >= webp.bytesize

        at += 8 + webp.byteslice(at + 4, 4).unpack1("V").succ / 2 * 2
      end
      webp.byteslice(at + 8, webp.byteslice(at + 4, 4).unpack1("V"))
    end

    # Info and Tracks.
    def head(width, height, seconds)
      duration = element(0x4489, [seconds * SECOND].pack("G"))
      video = element(0xE0, number(0xB0, width), number(0xBA, height))
      track = element(0xAE, number(0xD7, 1), number(0x73C5, 1), number(0x83, 1), text(0x86, "V_VP8"), video)
      element(0x1549A966, number(0x2AD7B1, 1_000_000), duration, text(0x4D80, "test"), text(0x5741, "test")) +
        element(0x1654AE6B, track)
    end

    # Cues. All numbers have the same size, so the length does not depend on their values.
    def index(offsets)
      points = offsets.map.with_index do |offset, second|
        element(0xBB, number(0xB3, second * SECOND), element(0xB7, number(0xF7, 1), number(0xF1, offset)))
      end
      element(0x1C53BB6B, *points)
    end

    # With a SimpleBlock of track 1 at its beginning, a key frame.
    def cluster(second, frame)
      element(0x1F43B675, number(0xE7, second * SECOND), element(0xA3, [0x81, 0, 0x80].pack("CnC") + frame))
    end

    def number(id, value)
      element(id, [value].pack("Q>"))
    end

    def text(id, value)
      element(id, value)
    end

    def element(id, *parts)
      body = parts.map(&:b).join
      [format("%x", id)].pack("H*") + [(1 << 56) | body.bytesize].pack("Q>") + body
    end
  end
end
