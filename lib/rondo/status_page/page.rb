# frozen_string_literal: true

# The status page of the control server: one document without anything outside of it. Its parts are the files beside
# this one.
# SPDX-License-Identifier: MIT

require "digest"

module Rondo
  # The document of the status page, and what a browser may do with it.
  # @api private
  module StatusDocument
    # A line that is only for who reads the file.
    COMMENT = %r{\A(?:|// .*|/\* .*\*/|<!-- .*-->)\z}
    private_constant :COMMENT

    # @return [String] HTML
    def self.html
      @html ||= read("page.html").sub("/*css*/") { css }.sub("/*js*/") { script }.freeze
    end

    # @return [String] Content-Security-Policy: nothing is loaded but events, and nothing runs but what the page has
    def self.policy
      @policy ||= "default-src 'none'; script-src '#{hash_of(script)}'; style-src '#{hash_of(css)}'; " \
                  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    end

    def self.css
      @css ||= read("page.css").gsub(/\s*([{};,])\s*/, '\1').gsub(": ", ":").freeze
    end
    private_class_method :css

    def self.script
      @script ||= read("page.js").gsub(/ (=>?|[=!]==|\+|&&) /, '\1').freeze
    end
    private_class_method :script

    def self.hash_of(text)
      "sha256-#{Digest::SHA256.base64digest(text)}"
    end
    private_class_method :hash_of

    # As lean as it is served: lines without what indents them, and without comments of whole lines.
    def self.read(name)
      lines = File.readlines(File.join(__dir__, name), chomp: true, encoding: Encoding::UTF_8).map(&:strip)
      lines.grep_v(COMMENT).join("\n")
    end
    private_class_method :read
  end
end
