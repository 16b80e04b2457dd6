# frozen_string_literal: true

# What may be shown of an address: in lines of the log, and in errors. It needs nothing else, so publisher.rb has it,
# too, which loads without the server.
# SPDX-License-Identifier: MIT

module Rondo
  module PubSub
    # What engines with a connection share.
    module Queued
      # Of an address that may be none. What stands before an @ is not shown, nor what is no port after a colon, nor
      # passwords and tokens among its options.
      # @param url [String]
      # @return [String] one line
      # @api private
      def self.without_secrets(url)
        scheme, rest = url.to_s.scrub.match(%r{\A([a-z]+(?:\+[a-z]+)?:/+)?(?:.*@)?(.*)\z}mi).captures
        rest = rest.gsub(/((?:password|token)=)[^&]*/i, "\\1...")
        shown = rest.gsub(%r{\[[\h:.]*\]|:[^,/?\s]*}) { |part| part.match?(/\A(?:\[|:\d{0,5}\z)/) ? part : ":..." }
        "#{scheme}#{shown}".lines.first.to_s.chomp
      end
    end
  end
end
