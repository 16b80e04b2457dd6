# frozen_string_literal: true

# What all commands say of an option that there is not, so that `rondo`, `rondo bench`, `rondo ctl` and `rondo top` say
# it in the same words.
# SPDX-License-Identifier: MIT

require "optparse"
require "rondo"

module Rondo
  # Errors of optparse, each as one line.
  # @api private
  module CommandLine
    module_function

    # What a command does that cannot do what it was told.
    # @param error [OptionParser::ParseError, Error]
    # @param parser [OptionParser]
    # @param err [IO] gets one line
    # @return [Integer] the exit code, 1
    def fail_with(error, parser, err)
      line = error.is_a?(OptionParser::ParseError) ? wrong(error, parser) : error.message
      err.puts "rondo: #{Logger.escape(line)}"
      1
    end

    # optparse adds a second line with its own guess, of some versions of Ruby only.
    # @param error [OptionParser::ParseError]
    # @param parser [OptionParser] whose options may have been meant
    # @param others [Array<String>] further words that may have been meant
    # @return [String] one line
    def wrong(error, parser, others = [])
      return error.message unless error.is_a?(OptionParser::InvalidOption)

      word = error.args.first.to_s.dup.force_encoding(Encoding::UTF_8).scrub("?")
      "invalid option #{word}#{Server.nearest(word[/\A[^=]*/], flags(parser) + others)}"
    end

    # @param parser [OptionParser]
    # @return [Array<String>] its long options
    def flags(parser)
      parser.top.list.grep(OptionParser::Switch).flat_map(&:long)
    end
  end
end
