# frozen_string_literal: true

# Describes an exception that the configuration file (config/configuration.rb) or the application
# (boot/failure.rb) raised at boot; those add the place.
# SPDX-License-Identifier: MIT

module Rondo
  # Describes any exception, `exit` included: a server whose application calls exit has not started,
  # whatever the status.
  # @api private
  module BootError
    LINE_MAX = 1000

    module_function

    # @param error [Exception]
    # @return [String] one line
    def words(error)
      return "it called exit at boot (status #{error.status})" if error.is_a?(SystemExit)

      line = message(error).lines.map(&:strip).find { |text| !text.empty? }
      [line && line[0, LINE_MAX], "(#{error.class})"].compact.join(" ")
    end

    # @param error [Exception]
    # @return [String] class and the whole message
    def title(error)
      "#{error.class}: #{message(error)}".strip
    end

    # @param error [Exception] whose message may be anything, or raise
    # @return [String]
    def message(error)
      utf8(error.message.to_s)
    rescue StandardError => e
      "its message cannot be shown: #{e.class}"
    end

    # @param text [String] in any encoding
    # @return [String] to be joined with others
    def utf8(text)
      return text.dup.force_encoding(Encoding::UTF_8).scrub if text.encoding.ascii_compatible?

      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace)
    end
  end
end
