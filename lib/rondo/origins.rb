# frozen_string_literal: true

# Whose pages may open a WebSocket. A browser lets every page open one to every server, with the
# server's cookies, and says in Origin whose page it is (RFC 6455 section 10.2).
# SPDX-License-Identifier: MIT

module Rondo
  # The setting allowed_origins.
  # @api private
  class Origins
    # As browsers write it (RFC 6454 section 6.2), without case.
    ORIGIN = %r{\A([a-z][a-z0-9+.-]*://)([a-z0-9._-]+|\[[0-9a-f:.]+\])(:\d{1,5})?\z}
    OPAQUE = "null"
    ANY_SUBDOMAIN = "://*."
    PORTS = { "http://" => ":80", "https://" => ":443" }.freeze
    FORWARDED_HOST = /(?:\A|[;,])[ \t]*host="?([^";,\s]+)/i

    # @param allowed [nil, Symbol, String, Array<String, Symbol>, #call]
    # @param fields [Symbol] see {#initialize}
    # @return [Origins, nil] nil: every origin may
    # @raise [SettingError]
    def self.from(allowed, fields: :x_forwarded)
      allowed.nil? ? nil : new(allowed, fields: fields)
    end

    # @param allowed [Symbol, String, Array<String, Symbol>, #call] :same for pages of the host that the
    #   request is for, "https://www.example.com", "https://*.example.com", "null"; or what is called
    #   with env
    # @param fields [Symbol] the setting trusted_proxy_fields: which fields of a trusted peer name the host
    # @raise [SettingError]
    def initialize(allowed, fields: :x_forwarded)
      @standard = fields == :forwarded
      @callable = allowed if allowed.respond_to?(:call)
      listed = @callable ? [] : Array(allowed)
      @same = listed.include?(:same)
      patterns, exact = (listed - [:same]).map(&:to_s).partition { |text| text.include?(ANY_SUBDOMAIN) }
      @exact = exact.map { |text| known(text) || refuse(text) }
      @patterns = patterns.map { |text| pattern(text) }
    end

    # @param env [Hash] of the handshake
    # @param trusted [Boolean] whether the peer is one of trusted_proxies
    # @return [Boolean]
    def allow?(env, trusted)
      return !!@callable.call(env) if @callable

      said = env["HTTP_ORIGIN"] or return true # no browser
      origin = known(said) or return false
      @exact.include?(origin) || @patterns.any? { |scheme, ending| under?(origin, scheme, ending) } ||
        (@same && hosts(env, trusted).any? { |host| same?(origin, host) })
    end

    private

    # @return [String, nil] with its port; nil for what is none
    def known(text)
      text = text.b.downcase
      return text if text == OPAQUE

      scheme, host, port = ORIGIN.match(text)&.captures
      "#{scheme}#{host}#{port || PORTS[scheme]}" if scheme
    end

    def pattern(text)
      origin = known(text.sub(ANY_SUBDOMAIN, "://")) or refuse(text)
      scheme, authority = origin.split("://")
      ["#{scheme}://", ".#{authority}"]
    end

    def under?(origin, scheme, ending)
      origin.start_with?(scheme) && origin.end_with?(ending) && origin.size > scheme.size + ending.size
    end

    # The host of the client's request, before trusted proxies changed it.
    def hosts(env, trusted)
      said = trusted ? forwarded(env) : []
      said.empty? ? [env["HTTP_HOST"].to_s] : said
    end

    def forwarded(env)
      return env.fetch("HTTP_FORWARDED", "").scan(FORWARDED_HOST).flatten if @standard

      env.fetch("HTTP_X_FORWARDED_HOST", "").split(",").map(&:strip)
    end

    # For any scheme of the request: a proxy that ends TLS need not report it.
    def same?(origin, host)
      origin == known("#{origin[%r{\A.*?://}]}#{host}")
    end

    def refuse(text)
      raise SettingError, "allowed_origins: #{text.inspect} is not an origin like https://www.example.com"
    end
  end
end
