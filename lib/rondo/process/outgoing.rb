# frozen_string_literal: true

# Connections that the application asks for: their URLs and options; see docs/CONNECT.md. The options of TLS are in
# config/tls_call.rb. ext/rondo/protocol/outgoing.c makes the connections; the extension's side of this file is
# ext/rondo/app/rb_connect.c.
# SPDX-License-Identifier: MIT

require "rondo/config/tls_call"
require "rondo/process/calling"

module Rondo
  # A connection that is to be made. The arguments are checked here, before anything happens.
  # @api private
  class Outgoing
    EXPECTED = "expected tcp://HOST:PORT, tls://HOST:PORT, ws://HOST, wss://HOST or unix://PATH"
    # The bytes of a name in the DNS, with room for the zone of an address.
    HOST_MAX = 255
    # Seconds.
    TIMEOUTS = (0.01..86_400)
    OPTIONS = %i[timeout].freeze
    TLS_OPTIONS = %i[verify ca cert key key_password server_name alpn].freeze
    WEBSOCKET_OPTIONS = %i[headers protocols].freeze
    # Of URLs that need none.
    PORTS = { "ws" => 80, "wss" => 443 }.freeze
    PLACE = %r{\A(?<scheme>tcp|tls|wss?)://(?:\[(?<literal>[^\]]+)\]|(?<name>[^:\[\]/?\#@]+))(?::(?<port>\d{1,5}))?
               (?<target>[/?].*)?\z}x

    # @param url [String]
    # @param handler [Object]
    # @param options [Hash{Symbol => Object}]
    # @raise [AddressError] one line: the URL
    # @raise [ArgumentError, TypeError] the handler, or an option
    def initialize(url, handler, options)
      raise ArgumentError, "an outgoing connection needs a handler, not #{handler.inspect}" unless handler

      @url = shown(url)
      @handler = handler
      @where = place.merge(url: @url)
      check(options)
      @timeout_ms = options[:timeout] && milliseconds(options[:timeout])
      @tls = TLS::Call.new(@url, @where[:host], options.slice(*TLS_OPTIONS)) if secure?
      @where[:websocket] = Calling.new(@authority, @target, *options.values_at(*WEBSOCKET_OPTIONS)).to_h if websocket?
    end

    # @param core [Server::Core]
    # @return [void]
    # @raise [DialLimitError]
    # @raise [AddressError] a certificate or a key cannot be used
    def begin(core)
      core.connect(@handler, @where.merge(timeout_ms: @timeout_ms, tls: @tls&.material))
    end

    # As a task, in each process that serves: there it has failed if it cannot even begin.
    # @return [void]
    def begin_later
      Rondo.run do
        Rondo.connect_now(self)
      rescue StandardError
        @handler.on_close(nil) if @handler.respond_to?(:on_close, true)
        raise
      end
    end

    private

    def shown(url)
      text = String.try_convert(url) or raise TypeError, "the URL must be a String, not #{url.class}"
      refuse(text.inspect[0, 300]) unless text.valid_encoding? && !text.match?(/[\0-\x20\x7f]/)
      text.dup.freeze
    end

    def refuse(url, why = EXPECTED)
      raise AddressError, "cannot connect to #{url}: #{why}"
    end

    def place
      found = PLACE.match(@url)
      return tcp(found) if found && (found[:port] || PORTS[found[:scheme]]) && fits?(found)

      path = @url[%r{\Aunix://(.+)\z}, 1] or refuse(@url)
      { path: unix(path) }
    end

    # Only a WebSocket has a path, of visible ASCII and without a fragment (RFC 6455, section 3).
    def fits?(found)
      target = found[:target].to_s
      PORTS.key?(found[:scheme]) ? target.match?(/\A[!-~]*\z/) && !target.include?("#") : ["", "/"].include?(target)
    end

    def tcp(found)
      host = found[:literal] || found[:name]
      port = found[:port] ? Integer(found[:port], 10) : PORTS[found[:scheme]]
      refuse(@url, "port #{port} is not between 1 and 65535") unless port.between?(1, 65_535)
      refuse(@url, "the name is longer than #{HOST_MAX} bytes") if host.bytesize > HOST_MAX
      note_request(found, port)
      { host: host, port: port }
    end

    def note_request(found, port)
      host = found[:literal] ? "[#{found[:literal]}]" : found[:name]
      @authority = port == PORTS[found[:scheme]] ? host : "#{host}:#{port}"
      @target = found[:target].to_s.sub(%r{\A(?!/)}, "/")
    end

    def unix(path)
      path.start_with?("@") ? path : File.expand_path(path)
    end

    def secure?
      @url.start_with?("tls:", "wss:")
    end

    def websocket?
      @url.start_with?("ws:", "wss:")
    end

    def check(options)
      options.each_key do |name|
        next if OPTIONS.include?(name)
        next if TLS_OPTIONS.include?(name) && secure?
        next if WEBSOCKET_OPTIONS.include?(name) && websocket?

        refuse_option(name)
      end
    end

    def refuse_option(name)
      raise ArgumentError, "#{name} is an option of tls: and wss:, not of #{@url}" if TLS_OPTIONS.include?(name)
      raise ArgumentError, "#{name} is an option of ws: and wss:, not of #{@url}" if WEBSOCKET_OPTIONS.include?(name)

      known = OPTIONS + TLS_OPTIONS + WEBSOCKET_OPTIONS
      raise ArgumentError, "unknown option #{name} of an outgoing connection#{Server.nearest(name, known)}"
    end

    def milliseconds(seconds)
      unless seconds.is_a?(Numeric) && seconds.real?
        raise TypeError, "timeout must be a number of seconds, not #{seconds.class}"
      end
      unless TIMEOUTS.cover?(seconds)
        raise ArgumentError, "timeout must be from #{TIMEOUTS.begin} to #{TIMEOUTS.end} seconds, not #{seconds}"
      end

      (seconds * 1000).ceil
    end
  end

  class << self
    # Makes a connection, in the server that runs in this process. What is asked for before one runs
    # begins when one does, in each worker of a cluster. Any thread; does not wait for the connection.
    # @param url [String] tcp://HOST:PORT, tls://HOST:PORT, ws://HOST/PATH, wss://HOST/PATH or unix://PATH
    # @param handler [Object] its callbacks, as those of a raw connection; `on_close(nil)` is the only one if
    #   the connection cannot be made
    # @param options [Hash{Symbol => Object}] timeout [Numeric] seconds until it has to be there, instead of the setting
    #   dial_timeout_ms; of tls: and wss: also those of {TLS::Call#initialize}, of ws: and wss: those of
    #   {Calling#initialize}, headers and protocols
    # @return [Object] the handler
    # @raise [AddressError] the URL; one line
    # @raise [ArgumentError, TypeError] there is no handler, or an option is not valid
    # @raise [DialLimitError] max_dials connections are being made already
    def connect(url, handler:, **options)
      outgoing = Outgoing.new(url, handler, options)
      PubSub.core ? connect_now(outgoing) : outgoing.begin_later
      handler
    end

    # @api private
    # @param outgoing [Outgoing]
    # @return [void]
    def connect_now(outgoing)
      outgoing.begin(PubSub.core)
    end
  end
end
