# backtick_javascript: true
# frozen_string_literal: true

# Uploads. Rack's parser changes strings in place and writes temporary files; here the body is in memory already, and is
# cut at its boundaries (multipart/cutter.rb). A file of a form is a Hash as Rack makes it, with a Rondo::Input as
# :tempfile (multipart/part.rb).
# SPDX-License-Identifier: MIT

require "rack/bad_request"
require "rack/multipart/cutter"
require "rack/multipart/part"

module Rack
  # multipart/form-data (RFC 7578).
  module Multipart
    class MissingInputError < StandardError
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

    BOUNDARY = %r{\Amultipart/.*?boundary(\s*)="?([^";,]+)"?}i

    class << self
      # @return [Hash, Array, nil] nil for any other body, and for one without bytes
      # @raise [Error, EmptyContentError, MultipartPartLimitError, MultipartTotalPartLimitError]
      def parse_multipart(env, params = Utils.default_query_parser)
        input = env["rack.input"] or raise MissingInputError, "Missing input stream!"
        boundary = boundary_of(env["CONTENT_TYPE"].to_s)
        return if boundary.nil? || env["CONTENT_LENGTH"] == "0"

        collected = params.make_params
        Cutter.new(input, boundary).parts.each do |part|
          params.normalize_params(collected, part.name, part.value) unless part.filename == ""
        end
        collected.to_params_hash
      end

      def extract_multipart(request, _params = nil)
        parse_multipart(request.env)
      end

      private

      # As Rack's parser reads it.
      def boundary_of(type)
        match = BOUNDARY.match(type) or return
        raise Error, "whitespace between boundary parameter name and equal sign" unless match[1].empty?
        if type.scan(/boundary(?:\*\d*\*?)?\s*=/i).size > 1
          raise Error, "multiple boundary parameters found in multipart content type"
        end
        return match[2] if match[2].length <= 70

        raise Error, "multipart boundary size too large (#{match[2].length} characters)"
      end
    end
  end
end
