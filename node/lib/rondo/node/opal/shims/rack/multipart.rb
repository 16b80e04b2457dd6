# frozen_string_literal: true

# Rack's parser of uploads changes strings in place and writes temporary files; neither is possible here. Forms without
# files work.
# SPDX-License-Identifier: MIT

module Rack
  # Bodies of several parts, which are refused.
  module Multipart
    class MissingInputError < StandardError; end
    class MultipartPartLimitError < StandardError; end
    class MultipartTotalPartLimitError < StandardError; end
    class EmptyContentError < EOFError; end
    class BoundaryTooLongError < StandardError; end

    ParamList = Class.new

    # @return [nil] for any other body
    # @raise [NotImplementedError]
    def self.parse_multipart(env, _params = nil)
      return unless env["CONTENT_TYPE"].to_s.downcase.start_with?("multipart/")

      raise NotImplementedError, "multipart/form-data is not parsed on Node: Rack's parser changes strings in place"
    end

    def self.extract_multipart(request, _params = nil)
      parse_multipart(request.env)
    end
  end
end
