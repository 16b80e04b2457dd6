# backtick_javascript: true
# frozen_string_literal: true

# The part of Ruby's uri that web frameworks use. Opal's own has only two methods of it, and Ruby's is made of regular
# expressions that JavaScript does not have.
# SPDX-License-Identifier: MIT

# Escaping and parsing.
module URI
  class Error < StandardError; end
  class InvalidURIError < Error; end
  class InvalidComponentError < Error; end

  # RFC 2396, for URI::DEFAULT_PARSER.
  class Parser
    # @return [String]
    def escape(text, _unsafe = nil)
      `encodeURI(text.toString()).replace(/%5B/g, "[").replace(/%5D/g, "]")`
    end

    # @return [String]
    def unescape(text, _escaped = nil)
      URI.decode(text)
    end
  end

  RFC2396_Parser = Parser
  DEFAULT_PARSER = Parser.new
  RFC2396_PARSER = DEFAULT_PARSER
  RFC3986_PARSER = DEFAULT_PARSER

  # What `parse` returns.
  class Generic
    attr_accessor :scheme, :userinfo, :host, :port, :path, :query, :fragment

    # @return [String]
    def to_s
      authority = host ? "//#{"#{userinfo}@" if userinfo}#{host}#{":#{port}" if port && port != default_port}" : ""
      "#{"#{scheme}:" if scheme}#{authority}#{path}#{"?#{query}" if query}#{"##{fragment}" if fragment}"
    end

    # @return [Integer, nil]
    def default_port
      { "http" => 80, "https" => 443, "ws" => 80, "wss" => 443 }[scheme]
    end

    # @return [String] path and query
    def request_uri
      "#{path.empty? ? "/" : path}#{"?#{query}" if query}"
    end

    def absolute?
      !scheme.nil?
    end

    def relative?
      !absolute?
    end
  end

  class HTTP < Generic; end
  class HTTPS < HTTP; end

  # RFC 3986, appendix B.
  AUTHORITY = %r{//(?:([^/?#@]*)@)?(\[[^\]]*\]|[^/?#:]*)(?::(\d*))?}
  PARTS = /^(?:([a-z][a-z0-9+.-]*):)?(?:#{AUTHORITY.source})?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/i
  CLASSES = { "http" => HTTP, "https" => HTTPS }.freeze

  class << self
    # @return [Generic]
    # @raise [InvalidURIError]
    def parse(text)
      match = PARTS.match(text.to_s)
      raise InvalidURIError, "bad URI (is not URI?): #{text.inspect}" if match.nil? || text.match?(/[\s<>"{}|\\^`]/)

      scheme = match[1]&.downcase
      CLASSES.fetch(scheme, Generic).new.tap do |uri|
        uri.scheme = scheme
        uri.userinfo, uri.host, port, uri.path, uri.query, uri.fragment = match.captures.drop(1)
        uri.port = port.to_s.empty? ? uri.default_port : port.to_i
      end
    end

    # @return [String] bytes that are UTF-8 become text
    # @raise [ArgumentError] a % without two digits
    def decode_www_form_component(text, _encoding = nil)
      decode(text.tr("+", " "))
    end

    def decode_uri_component(text, _encoding = nil)
      decode(text)
    end

    # @return [String]
    def encode_www_form_component(text, _encoding = nil)
      encode_uri_component(text).gsub("%20", "+")
    end

    def encode_uri_component(text, _encoding = nil)
      `Opal.rondo.text.escape(#{text})`
    end

    # @param pairs [Enumerable]
    # @return [String]
    def encode_www_form(pairs, _encoding = nil)
      pairs.flat_map do |name, value|
        key = encode_www_form_component(name)
        next [key] if value.nil?

        Array(value).map { |one| "#{key}=#{encode_www_form_component(one)}" }
      end.join("&")
    end

    # @return [Array<Array(String, String)>]
    def decode_www_form(text, _encoding = nil)
      text.split("&").map do |part|
        name, value = part.split("=", 2)
        [decode_www_form_component(name.to_s), decode_www_form_component(value.to_s)]
      end
    end

    # @return [String]
    def decode(text)
      decoded = `Opal.rondo.text.unescape(text)`
      raise ArgumentError, "invalid %-encoding (#{text})" if `decoded === null`

      decoded
    end
  end
end

# `URI(text)`.
module Kernel
  def URI(text) # rubocop:disable Naming/MethodName -- Ruby's name
    URI.parse(text)
  end
end
