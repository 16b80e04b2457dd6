# frozen_string_literal: true

# Ruby's cgi/escape is written in C.
# SPDX-License-Identifier: MIT

require "uri"

# Escaping for HTML and for URLs.
class CGI
  HTML = { "'" => "&#39;", "&" => "&amp;", "\"" => "&quot;", "<" => "&lt;", ">" => "&gt;" }.freeze
  NAMED = { "amp" => "&", "quot" => "\"", "lt" => "<", "gt" => ">", "apos" => "'" }.freeze

  # What Ruby has there.
  module Escape
    # @return [String]
    def escapeHTML(text) # rubocop:disable Naming/MethodName -- Ruby's name
      text.to_s.gsub(/['&"<>]/) { |char| HTML[char] }
    end

    # @return [String]
    def unescapeHTML(text) # rubocop:disable Naming/MethodName -- Ruby's name
      text.gsub(/&(?:(amp|quot|lt|gt|apos)|#(\d+)|#[xX](\h+));/) do
        name, decimal, hexadecimal = Regexp.last_match.captures
        NAMED[name] || (decimal ? decimal.to_i : hexadecimal.to_i(16)).chr
      end
    end

    # @return [String]
    def escape(text)
      URI.encode_www_form_component(text)
    end

    # @return [String]
    def unescape(text, encoding = nil)
      URI.decode_www_form_component(text, encoding)
    end

    alias escape_html escapeHTML
    alias unescape_html unescapeHTML
  end

  extend Escape
end
