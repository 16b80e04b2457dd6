# backtick_javascript: true
# frozen_string_literal: true

# Uploads. Rack's parser changes strings in place and writes temporary files; here the body is in memory already, and is
# cut at its boundaries. A file of a form is a Hash as Rack makes it, with a Rondo::Input as :tempfile.
# SPDX-License-Identifier: MIT

require "rack/bad_request"

module Rack
  # multipart/form-data (RFC 7578).
  module Multipart
    class MissingInputError < StandardError; end

    # The body is not what it says.
    class Error < StandardError
      include BadRequest
    end

    class EmptyContentError < EOFError
      include BadRequest
    end

    class MultipartPartLimitError < StandardError
      include BadRequest
    end

    class MultipartTotalPartLimitError < StandardError
      include BadRequest
    end

    # Collects names and values, where Rack wants no Hash.
    class ParamList
      def self.make_params
        new
      end

      def self.normalize_params(params, key, value)
        params << [key, value]
      end

      def initialize
        @pairs = []
      end

      def <<(pair)
        @pairs << pair
      end

      def to_params_hash
        @pairs
      end
    end

    # One part: its head and the bytes of its body.
    class Part
      PARAMETER = /;\s*([\w*-]+)=(?:"((?:\\.|[^"\\])*)"|([^;\s]*))/

      # @param head [String] header lines
      # @param bytes [Object] a Buffer
      def initialize(head, bytes)
        @head = head
        @bytes = bytes
      end

      # @return [String, nil]
      def name
        parameters["name"] || filename
      end

      # @return [String, nil] without folders
      def filename
        given = parameters["filename"] or return
        given = Utils.unescape_path(given) if given.scan(/%.?.?/).all? { |escape| escape.match?(/%\h\h/) }
        given.split(%r{[/\\]}).last || ""
      end

      # @return [String, Hash]
      def value
        return `Opal.rondo.text.fromBytes(#{@bytes})` unless filename

        { filename: filename, type: field("content-type"), name: name, tempfile: file, head: "#{@head}\r\n" }
      end

      private

      def file
        input = Rondo::Input.new
        `Object.assign(input, { bytes: #{@bytes}, position: 0, closed: false })`
        input
      end

      def field(wanted)
        line = @head.split("\r\n").find { |one| one.downcase.start_with?("#{wanted}:") }
        line && line.split(":", 2).last.strip
      end

      def parameters
        @parameters ||= field("content-disposition").to_s.scan(PARAMETER).to_h do |(name, quoted, plain)|
          [name.downcase, quoted ? quoted.gsub(/\\(["\\])/) { Regexp.last_match(1) } : plain]
        end
      end
    end

    BOUNDARY = %r{\Amultipart/.*?boundary=(?:"([^"]+)"|([^\s;,]+))}i

    class << self
      # @return [Hash, Array, nil] nil for any other body
      # @raise [Error, EmptyContentError, MultipartPartLimitError, MultipartTotalPartLimitError]
      def parse_multipart(env, params = Utils.default_query_parser)
        match = BOUNDARY.match(env["CONTENT_TYPE"].to_s) or return
        collected = params.make_params
        parts = split(env["rack.input"], match[1] || match[2])
        check(parts)
        parts.each { |part| params.normalize_params(collected, part.name, part.value) if part.name }
        collected.to_params_hash
      end

      def extract_multipart(request, _params = nil)
        parse_multipart(request.env)
      end

      private

      def split(input, boundary)
        raise MissingInputError, "Missing input stream!" unless input
        raise EmptyContentError if input.eof?

        pieces = `cut(input.bytes, boundary)`
        raise EmptyContentError, "bad content body" if `pieces === null`

        pieces.map { |(head, bytes)| Part.new(head, bytes) }
      end

      def check(parts)
        limit = Utils.multipart_total_part_limit
        if limit.positive? && parts.size >= limit
          raise MultipartTotalPartLimitError, "Maximum total multiparts in content reached"
        end

        limit = Utils.multipart_file_limit
        return unless limit.positive? && parts.count(&:filename) >= limit

        raise MultipartPartLimitError, "Maximum file multiparts in content reached"
      end
    end

    %x{
      // Pairs of a head (text) and a body (a Buffer); null without an end.
      function cut(bytes, boundary) {
        const delimiter = Buffer.from("\r\n--" + Opal.rondo.text.toLatin1(boundary), "latin1");
        const body = Buffer.concat([Buffer.from("\r\n"), bytes]);
        const pieces = [];
        let at = body.indexOf(delimiter);
        while (at >= 0) {
          const from = at + delimiter.length;
          if (body.toString("latin1", from, from + 2) === "--") return pieces;
          at = body.indexOf(delimiter, from);
          const blank = body.indexOf("\r\n\r\n", from);
          if (at < 0 || blank < 0 || blank > at) return null;
          const head = Opal.rondo.text.fromBytes(body.subarray(from + 2, blank)).toString();
          pieces.push([head, body.subarray(blank + 4, Math.max(at, blank + 4))]);
        }
        return null;
      }
    }
  end
end
