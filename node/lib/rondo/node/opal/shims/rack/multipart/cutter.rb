# backtick_javascript: true
# frozen_string_literal: true

# Cuts a form at its boundaries, without a copy of it. Each limit of Rack's parser is looked at before the next part is
# cut, so a body of many boundaries costs no more than one of few.
# SPDX-License-Identifier: MIT

require "rack/bad_request"
require "rack/utils"

module Rack
  # Its errors.
  module Multipart
    class BoundaryTooLongError < StandardError
      include BadRequest
    end

    # The name that Rack uses for all that is wrong in a form.
    Error = BoundaryTooLongError

    class EmptyContentError < EOFError
      include BadRequest
    end

    class MultipartPartLimitError < StandardError
      include BadRequest
    end

    class MultipartTotalPartLimitError < StandardError
      include BadRequest
    end

    # From the bytes of a body to its parts.
    class Cutter
      limit = ->(name, default) { Integer(ENV.fetch("RACK_MULTIPART_#{name}_LIMIT", default)) }
      HEAD_BYTES = 65_536
      START_BYTES = 1_048_576 # in which the first boundary has to come
      RETAINED_BYTES = limit.call("BUFFERED_UPLOAD_BYTESIZE", 16 * 1024 * 1024) # heads, and what is not a file
      MOST_ESCAPES = limit.call("CONTENT_DISPOSITION_QUOTED_ESCAPES", 8 * 1024)
      BODY_BYTES = limit.call("PARSER_BYTESIZE", 10 * 1024 * 1024 * 1024)

      # @param input [Rondo::Input]
      # @param boundary [String]
      def initialize(input, boundary)
        raise EmptyContentError if input.eof?

        size = input.size
        if BODY_BYTES.positive? && size > BODY_BYTES
          raise Error, "multipart upload exceeds limit of #{BODY_BYTES} bytes"
        end

        @input = input
        @bytes = `input.bytes`
        @line = `Buffer.from("\r\n--" + Opal.rondo.text.toLatin1(boundary), "latin1")`
        @parts = []
        @files = 0
        @retained = 0
        @escapes = 0
      end

      # @return [Array<Part>]
      # @raise [Error, EmptyContentError, MultipartPartLimitError, MultipartTotalPartLimitError]
      def parts
        place = first
        place = cut(`place.to`) until `place.isLast`
        @parts
      end

      private

      # The opening boundary. Lines of an end before it count only if there is nothing else.
      def first
        place = `findLine(#{@bytes}, #{@line}, 0)`
        too_late if `(place === null ? #{@bytes}.length : place.at) > #{START_BYTES}`
        raise EmptyContentError if `place === null`
        return place unless `place.isLast`

        place = `behindEnds(#{@bytes}, #{@line}, place)` unless `isOnly(#{@bytes}, place)`
        raise EmptyContentError if `place === null`

        place
      end

      def too_late
        raise Error, "multipart boundary not found within limit"
      end

      # One part, from its head to the next boundary.
      def cut(from)
        blank = `findBlank(#{@bytes}, from, #{HEAD_BYTES})`
        too_large_or_short(from) if blank.negative?
        part = Part.new(`Opal.rondo.text.fromBytes(#{@bytes}.subarray(from, blank)).toString()`, @input)
        take(part, blank - from + 2)
        start = blank + 4
        place = `findLine(#{@bytes}, #{@line}, start)`
        raise EmptyContentError if `place === null`

        retain(`place.at` - start) unless part.filename
        part.bytes = `#{@bytes}.subarray(start, place.at)`
        place
      end

      def too_large_or_short(from)
        raise EmptyContentError if `#{@bytes}.length - from <= #{HEAD_BYTES}`

        raise Error, "multipart mime part header too large"
      end

      def take(part, head_size)
        @escapes += part.escapes
        if @escapes > MOST_ESCAPES
          raise Error, "number of quoted escapes during content disposition parsing exceeds limit"
        end

        retain(head_size)
        @parts << part
        @files += 1 if part.filename
        check_counts
      end

      def retain(size)
        @retained += size
        raise Error, "multipart data over retained size limit" if @retained > RETAINED_BYTES
      end

      def check_counts
        limit = Utils.multipart_file_limit
        if limit.positive? && @files >= limit
          raise MultipartPartLimitError, "Too many open files - Maximum file multiparts in content reached"
        end

        limit = Utils.multipart_total_part_limit
        return unless limit.positive? && @parts.size >= limit

        raise MultipartTotalPartLimitError, "Maximum total multiparts in content reached"
      end
    end

    %x{
      // The next line of the boundary: where it begins and ends, and whether it is the last one; null without one.
      // A line that begins at `from` has no line end before it.
      function findLine(bytes, line, from) {
        const isRoom = from + line.length - 2 <= bytes.length;
        if (isRoom && bytes.compare(line, 2, line.length, from, from + line.length - 2) === 0) {
          const place = placeOf(bytes, from, from + line.length - 2);
          if (place !== null) return place;
        }
        for (let at = bytes.indexOf(line, from); at >= 0; at = bytes.indexOf(line, at + line.length)) {
          const place = placeOf(bytes, at, at + line.length);
          if (place !== null) return place;
        }
        return null;
      }

      function placeOf(bytes, at, end) {
        const isLast = bytes[end] === 45 && bytes[end + 1] === 45;
        return isLast || (bytes[end] === 13 && bytes[end + 1] === 10) ? { at, to: end + 2, isLast } : null;
      }

      function behindEnds(bytes, line, place) {
        while (place !== null && place.isLast) place = findLine(bytes, line, place.to);
        return place;
      }

      function isOnly(bytes, place) {
        return place.at === 0 && bytes.length === place.to + 2 && bytes.toString("latin1", place.to) === "\r\n";
      }

      // Where the blank line begins that ends a head.
      function findBlank(bytes, from, most) {
        const at = bytes.subarray(from, from + most).indexOf("\r\n\r\n");
        return at < 0 ? -1 : from + at;
      }
    }
  end
end
